"""Explanations of what a language model writes, with a vocabulary of 262,000 words: what is made once and what is not.

A tiny Llama (2 layers of 64) behind a tokenizer of made-up words, a prompt of 110 tokens and an output of 5. The model
computes next to nothing, so that the time is what the library does around it. Each method explains once to warm up and
then again and again, as a caller does who loads a model once.

`--against SRC` measures another version of the library in a process of its own, in turn with this one, and compares the
scores: SRC is the `src` folder of its checkout.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
from functools import partial
from itertools import islice, product
from pathlib import Path

import torch
from common import save, seconds
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

import raison

VOCABULARY, PROMPT, OUTPUT, ROUNDS = 262_000, 110, 5, 3
METHODS = ("occlusion", "kernel_shap(samples=256)", "attn_lrp", "random")
CONSONANTS, VOWELS = "bcdfghjklmnpqrstvwxyz", "aeiou"


def tokenizer() -> PreTrainedTokenizerFast:
    """Byte pairs: letters become syllables, syllables words of two and of three; a word is one token."""
    syllables = ["".join(pair) for pair in product(CONSONANTS, VOWELS)]
    pairs = [(one, other) for one in syllables for other in syllables]
    letters = ["<unk>", "<s>", "</s>", "...", "▁", *CONSONANTS, *VOWELS]
    triples = ((one + other, last) for one, other in pairs for last in syllables)
    short = [*((one[0], one[1]) for one in syllables), *pairs]
    merges = [*short, *islice(triples, VOCABULARY - len(letters) - len(short))]
    vocabulary = {word: number for number, word in enumerate([*letters, *("".join(pair) for pair in merges)])}
    made = Tokenizer(models.BPE(vocabulary, merges, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="never")
    made.decoder = decoders.Metaspace(replacement="▁", prepend_scheme="never")
    return PreTrainedTokenizerFast(
        tokenizer_object=made, bos_token="<s>", eos_token="</s>", unk_token="<unk>", model_max_length=512
    )


def texts(own: PreTrainedTokenizerFast) -> tuple[str, str]:
    """A prompt and an output of so many tokens, white space included."""
    words = random.Random(0).sample(sorted(word for word in own.get_vocab() if len(word) == 6), PROMPT + OUTPUT)
    prompt, output = (
        " ".join(words[: PROMPT // 2]),
        "".join(f" {word}" for word in words[PROMPT : PROMPT + OUTPUT // 2]),
    )
    return prompt, output


def measure() -> dict[str, tuple[float, list[list[float]]]]:
    """Median seconds of an explanation and its scores, by method."""
    own = tokenizer()
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=512,
        bos_token_id=1,
        eos_token_id=2,
    )
    torch.manual_seed(0)
    model = raison.load(LlamaForCausalLM(config).eval(), own)
    prompt, output = texts(own)
    found = {}
    for method in METHODS:
        scores = raison.explain(model, prompt, method, output=output).scores
        times = [seconds(partial(raison.explain, model, prompt, method, output=output)) for _ in range(ROUNDS)]
        found[method] = (statistics.median(times), [list(row) for row in scores])
    return found


def elsewhere(source: str) -> dict[str, tuple[float, list[list[float]]]]:
    """The same with another version of the library."""
    command = [sys.executable, __file__, "--json"]
    done = subprocess.run(command, env=os.environ | {"PYTHONPATH": source}, capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", metavar="SRC")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.json:
        print(json.dumps(measure()))
        return
    before = elsewhere(options.against) if options.against else {}
    after = elsewhere(str(Path(raison.__file__).parents[1]))
    rows: list[dict[str, object]] = []
    for method, (time, scores) in after.items():
        row: dict[str, object] = {"method": method, "s": time}
        if before:
            then, others = before[method]
            differences = (torch.tensor(scores, dtype=torch.float64) - torch.tensor(others, dtype=torch.float64)).abs()
            row |= {"s before": then, "before / now": then / time, "largest difference": float(differences.max())}
        rows.append(row)
    save("large_vocabulary", rows)


if __name__ == "__main__":
    main()
