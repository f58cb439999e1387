"""Attributive masking: what one pass and a fine-tuning on a text cost, against the paper's counts.

demo/sst2 and its explainer, one thread, processor seconds of this process (other work on the machine does not count).
pAML: the prediction and the map, against one plain forward pass of each of the two models. (`raison.explain` adds one
pass for any method: the value of the text with everything removed, which stands in every explanation.)
fAML with n steps: against (4 n + 1) R, the paper's section 3.2, with R one forward pass of the attribution model on the
same texts. A step reads two masked texts, so that the literal count is 6 n + 1 passes of one text: the paper counts the
two as one, which holds where a batch of two costs what one costs, for a single short text, and not where the machine is
full. Texts are explained one by one, and many at once: each has low-rank parameters of its own, stacked. "whole
backbone" fine-tunes all parameters of an attribution model, which goes text by text.
"""

import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from common import alternately, mixed_texts, save

import raison
from raison.core.capabilities.passes import Passes
from raison.core.problem import Ledger, Problem
from raison.explaining.batch import prepare
from raison.explaining.settings import Settings
from raison.masking.attribution import AttributionBatch
from raison.masking.explainer import find
from raison.masking.soft import Prediction
from raison.methods.aml import Aml
from raison.models.adapters.classifier import Classifier
from raison.models.derived.explainers import new_attributor, usual_folder
from raison.models.derived.trained_masks import read_card, write

TEXT = "the film is a slow but warm and honest story with a lovely ending that never feels dull or false"
STEPS, ROUNDS = 10, 5


def whole_backbone(model: Classifier, folder: Path) -> str:
    """An attribution model of which everything is trained: its speed does not depend on its training."""
    card = read_card(usual_folder(model.name, "aml"), model.name)
    attributor = new_attributor(model, "own", None, learned=False)
    name = next(iter(card.goals.values())).file
    write(folder, replace(card, rank=None, provenance={}), {name: attributor.state_dict()})
    return str(folder)


def measured(model: Classifier, texts: list[str], checkpoint: str | None, name: str) -> list[dict[str, object]]:
    """pAML and fAML on texts that are explained together."""
    settings = Settings(unit="token")
    explainer = find(model, checkpoint, None)
    batch = prepare(model, texts, settings)
    groups = model.ask(Passes).batches(batch.encoding)
    readings = [AttributionBatch.of(explainer.attributor, batch.encoding.select(rows), "max") for rows in groups]
    wanted = batch.full.softmax(-1)
    rngs = [np.random.default_rng(0) for _ in texts]
    whole = [torch.ones(1, count, dtype=torch.bool) for count in batch.encoding.unit_counts]

    def passes() -> None:
        with torch.no_grad():
            for rows, reading in zip(groups, readings, strict=True):
                explainer.attributor(reading.tokens, wanted[rows])

    def one_pass() -> None:
        fresh = prepare(model, texts, settings)
        problem = Problem(
            model, fresh.encoding, fresh.target, fresh.removal, Ledger.empty(len(texts)), fresh.evaluations
        )
        Aml(checkpoint).candidates(problem, rngs)

    def tuned() -> None:
        explainer.maps(
            model,
            batch.encoding,
            Prediction(wanted, batch.target.index),
            explainer.tuning(STEPS, None),
            [np.random.default_rng(0) for _ in texts],
        )

    times = alternately(
        {
            "explained": lambda: model.masked_logits(batch.encoding, whole, "mask"),
            "attribution": passes,
            "paml": one_pass,
            "faml": tuned,
        },
        ROUNDS,
        time.process_time,
    )
    one, several = times["explained"] + times["attribution"], (4 * STEPS + 1) * times["attribution"]
    found = (("pAML", times["paml"], one), (f"fAML, {STEPS} steps", times["faml"], several))
    return [
        {
            "method": method,
            "attribution model": name,
            "texts": len(texts),
            "seconds": seconds,
            "the paper's count, s": count,
            "ratio": seconds / count,
        }
        for method, seconds, count in found
    ]


def main() -> None:
    """Measure on one thread, as many small passes as there are."""
    torch.set_num_threads(1)
    model = raison.load("demo/sst2")
    with tempfile.TemporaryDirectory() as folder:
        whole = whole_backbone(model, Path(folder))
        rows = [
            *measured(model, [TEXT], None, "low rank"),
            *measured(model, mixed_texts(16), None, "low rank"),
            *measured(model, [TEXT], whole, "whole backbone"),
            *measured(model, mixed_texts(4), whole, "whole backbone"),
        ]
    save("aml", rows)


if __name__ == "__main__":
    main()
