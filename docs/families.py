"""The page of the families: which method runs on which architecture, asked of the tiny models that the tests use."""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

import raison  # noqa: E402
from raison.core.errors import UnsupportedError  # noqa: E402
from raison.core.method import Method  # noqa: E402
from raison.core.model import LanguageModel  # noqa: E402
from raison.methods import CATALOGUE  # noqa: E402
from tests.tiny import TINY  # noqa: E402

NAMES = {
    "albert": "ALBERT",
    "bart": "BART",
    "bert": "BERT",
    "big_bird": "BigBird",
    "deberta": "DeBERTa",
    "deberta_v2": "DeBERTa-v2, v3",
    "distilbert": "DistilBERT",
    "electra": "ELECTRA",
    "gpt2": "GPT-2",
    "llama": "Llama",
    "longformer": "Longformer",
    "mistral": "Mistral",
    "modernbert": "ModernBERT",
    "mpnet": "MPNet",
    "qwen3": "Qwen3",
    "roberta": "RoBERTa",
    "t5": "T5",
    "t5_encoder": "T5's encoder",
    "xlnet": "XLNet",
}
INTRODUCTION = """\
Which methods explain text classifiers of which architectures. Every cell is determined with a tiny random model of the
family; the contract tests run the methods on these models. A text's logits are the same alone and in a batch, within
1e-5.

"yes": the method runs. "trained": it runs with a trained explainer (`raison train aml`, `raison train ivra`). A number
is a reason below.

- The layers of ALBERT are passes of one module. They are numbered in the order of computation.
- BigBird reads texts up to a length with full attention (704 tokens as released), and longer ones with block-sparse
  attention, which depends on the padding. raison accepts texts up to that length. A model that was loaded with
  `attention_type="original_full"` has no such limit.
- XLNet's head reads the last position of a row, so texts of different lengths run in separate batches.
- Longformer computes its attention in chunks. Methods that need gradients or perturbed texts work.
- The decoder of a whole BART or T5 reads the text again, and the head reads the decoder. A token's attention is the sum
  over its positions in both stacks. Methods that replace attention or decompose layers do not work.
"""


def answer(method: Method, model: LanguageModel) -> str:
    """yes, trained, or why not."""
    lacking = method.lacking(model)
    if lacking:
        return "; ".join(lacking)
    if method.trained:
        return "trained"
    try:
        method.check(model)
    except UnsupportedError as refusal:
        return "; ".join(refusal.reasons)
    return "yes"


def answers() -> dict[str, dict[str, str]]:
    """By method and family."""
    models = {family: raison.load(*TINY[family]()) for family in sorted(TINY)}
    return {
        name: {family: answer(CATALOGUE.create(name), model) for family, model in models.items()}
        for name in CATALOGUE.names
    }


def page(note: str) -> str:
    """The page, with a note that it is generated."""
    found = answers()
    reasons = list(dict.fromkeys(cell for row in found.values() for cell in row.values()))
    numbers = {reason: str(n) for n, reason in enumerate((r for r in reasons if r not in ("yes", "trained")), 1)}
    head = ["method", *(NAMES[family] for family in sorted(TINY))]
    rows = [[f"`{name}`", *(numbers.get(cell, cell) for cell in row.values())] for name, row in found.items()]
    total = [
        "runs",
        *(str(sum(row[family] in ("yes", "trained") for row in found.values())) for family in sorted(TINY)),
    ]
    lines = [head, ["---"] * len(head), *rows, total]
    table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    told = "\n".join(f"{number}. {reason}" for reason, number in numbers.items())
    return f"# Families\n\n{note}{INTRODUCTION}\n{table}\n\n## Why not\n\n{told}\n"
