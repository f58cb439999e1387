"""Randomized Path-Integration: what re-running only the layers above a replaced attention is worth.

A text of 20 words, R = 24 baselines, n = 30 steps. "Upper layers" is what raison does; "whole model" runs all layers on
every point, in batches of the same number of tokens. demo/sst2 has 6 layers of 384; BERT-base has 12 of 768, here with
random weights, on which the speed does not depend. Whole passes are timed on the first of the baselines only, where the
column says so, and their time is multiplied. Differences are relative to the largest entry of a map, over those
baselines. Last, what one text takes through `raison.explain`, without a metric and with the 24 maps scored by one.
"""

import statistics
from unittest import mock

import numpy as np
import torch
from common import alternately, save, seconds
from torch import Tensor
from transformers import BertConfig, BertForSequenceClassification

import raison
from raison.core.errors import UnsupportedError
from raison.core.internals.layers import LayerSpec
from raison.core.problem import Evaluations, Ledger, Problem
from raison.core.targets.target import Target
from raison.methods.rpi import Rpi
from raison.models.adapters.classifier import Classifier
from raison.models.passes import rerun

TEXT = "the film is a slow but warm and honest story with a lovely ending that never feels dull or false"
BASELINES, STEPS, ROUNDS = 24, 30, 3


def bert_base(small: Classifier) -> Classifier:
    """12 layers of 768 with random weights, under the same tokenizer."""
    torch.manual_seed(0)
    model = BertForSequenceClassification(BertConfig(vocab_size=len(small.tokenizer))).eval()
    loaded = raison.load(model, small.tokenizer)
    assert isinstance(loaded, Classifier)
    return loaded


def maps(model: Classifier, layers: LayerSpec, baselines: int) -> Tensor:
    """The candidates of RPI on the text."""
    encoding = model.encode([TEXT])
    target = Target(torch.zeros(1, dtype=torch.long), None, "probability")
    problem = Problem(model, encoding, target, "mask", Ledger.empty(1), Evaluations())
    return Rpi(baselines=baselines, steps=STEPS, layers=layers).candidates(problem, [np.random.default_rng(0)])


def whole_maps(model: Classifier, layers: LayerSpec, baselines: int) -> Tensor:
    """The same with the whole model on every point."""
    refused = UnsupportedError("cannot re-run single layers", ["the benchmark asks for whole passes"])
    with mock.patch.object(rerun, "layer_stack", side_effect=refused):
        return maps(model, layers, baselines)


def compared(name: str, model: Classifier, layers: LayerSpec, timed: int) -> dict[str, object]:
    """One row: upper layers on all baselines against whole passes on the first `timed`. The first runs warm up."""
    upper, whole = maps(model, layers, BASELINES)[:timed], whole_maps(model, layers, timed)
    times = alternately(
        {
            "upper": lambda: maps(model, layers, BASELINES),
            "whole": lambda: whole_maps(model, layers, timed),
        },
        ROUNDS,
    )
    scaled = times["whole"] * BASELINES / timed
    return {
        "model": name,
        "layer": str(layers),
        "upper layers, s": times["upper"],
        "whole model, s": scaled,
        "timed on baselines": timed,
        "whole / upper": scaled / times["upper"],
        "largest difference": float(((upper - whole).abs().amax(2) / whole.abs().amax(2)).max()),
    }


def explained(model: Classifier, select: str | None) -> dict[str, object]:
    """Seconds of one explanation, the method's own settings; the first run warms up."""
    times = [
        seconds(lambda: raison.explain(model, TEXT, "rpi", select=select, progress=False)) for _ in range(ROUNDS + 1)
    ]
    return {
        "model": "demo/sst2",
        "layer": "last, raison.explain" + (f", select={select}" if select else ""),
        "upper layers, s": statistics.median(times[1:]),
        "whole model, s": "",
        "timed on baselines": "",
        "whole / upper": "",
        "largest difference": "",
    }


def main() -> None:
    small = raison.load("demo/sst2")
    assert isinstance(small, Classifier)
    assert len(TEXT.split()) == 20
    rows = [
        compared("demo/sst2", small, "last", BASELINES),
        compared("demo/sst2", small, "third_last", 6),
        compared("demo/sst2", small, 0, 6),
        compared("BERT-base, random", bert_base(small), "last", 2),
        explained(small, None),
        explained(small, "comprehensiveness"),
    ]
    save("attention_paths", rows)


if __name__ == "__main__":
    main()
