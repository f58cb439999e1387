"""How the time of an explanation grows with the length of its text, against another version of the library.

A random encoder of 6 layers of 384 (as all-MiniLM-L6-v2), one token per word, one thread. A method explains texts of 16
to 480 words. `--against SRC` measures the `src` folder of another checkout in processes of their own, in turn with this
one.
"""

import argparse
import json
import os
import random
import subprocess
import sys
from functools import partial
from pathlib import Path

import torch
from common import WORDS, save, seconds
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

import raison

ROUNDS = 3
LENGTHS = {
    "deep_lift": (16, 64, 256, 480),
    "attn_lrp": (16, 64, 256, 480),
    "rpi": (16, 64),
    "attention_rollout": (16, 64, 256, 480),
    "decompx": (16, 64, 128),
}


def tokenizer() -> PreTrainedTokenizerFast:
    """One token per word."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    vocabulary = {word: number for number, word in enumerate([*special, *dict.fromkeys(WORDS)])}
    made = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])]
    )
    roles = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), special, strict=True))
    return PreTrainedTokenizerFast(tokenizer_object=made, model_max_length=512, **roles)


def measure() -> dict[str, float]:
    """Seconds of one explanation, by method and number of words; the first call of each method is not timed."""
    own = tokenizer()
    config = BertConfig(
        vocab_size=len(own), hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536
    )
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = raison.load(BertForSequenceClassification(config).eval(), own)
    found = {}
    for method, lengths in LENGTHS.items():
        for words in lengths:
            text = " ".join(random.Random(words).choices(WORDS, k=words))
            work = partial(raison.explain, model, text, method, progress=False)
            if words == lengths[0]:
                work()
            found[f"{method} {words}"] = seconds(work)
    return found


def elsewhere(source: str) -> dict[str, float]:
    """The same in a process of its own."""
    command = [sys.executable, __file__, "--json"]
    done = subprocess.run(command, env=os.environ | {"PYTHONPATH": source}, capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    """The shortest of the rounds, which other work on the machine disturbs least."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--against")
    options = parser.parse_args()
    if options.json:
        print(json.dumps(measure()))
        return
    own = str(Path(raison.__file__).parents[1])
    sources = {"seconds": own} | ({"seconds before": options.against} if options.against else {})
    rounds = [{name: elsewhere(source) for name, source in sources.items()} for _ in range(ROUNDS)]
    rows: list[dict[str, object]] = []
    for key in next(iter(rounds[0].values())):
        method, words = key.split()
        times = {name: min(found[name][key] for found in rounds) for name in sources}
        rows.append({"method": method, "words": int(words), **times})
    save("long_texts", rows)


if __name__ == "__main__":
    main()
