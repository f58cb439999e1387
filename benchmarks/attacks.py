"""Attacks in embedding space: many texts in one batch against one by one, and what a step costs.

all-MiniLM-L6-v2 with a random head, one thread, processor seconds of this process (other work on the machine does not
count). A step is a forward pass for the prediction, the explanation, and the gradient of both, which for methods that
are gradients themselves is a second derivative; "passes" is its time over that of one plain forward pass of the same
texts.
"""

import time

import torch
from common import alternately, minilm, mixed_texts, save

from raison.core.capabilities.passes import Passes
from raison.core.method import Method
from raison.explaining.settings import Settings
from raison.methods import CATALOGUE
from raison.models.adapters.classifier import Classifier
from raison.trust.attack_settings import EmbeddingAttack
from raison.trust.attacks import attacks

STEPS, TEXTS, ROUNDS = 3, 16, 3
METHODS = ("saliency", "input_x_gradient", "integrated_gradients(steps=8)", "attention_rollout")


def attack(model: Classifier, texts: list[str], method: Method, steps: int) -> None:
    plan = EmbeddingAttack(steps=steps, draws=1)
    for _ in attacks(model, texts, [method], Settings(), plan):
        pass


def measured(model: Classifier, texts: list[str], method: Method, name: str) -> dict[str, object]:
    encoding = model.encode(texts, "word")

    def plain() -> None:
        with torch.no_grad():
            for rows in model.ask(Passes).batches(encoding):
                model.ask(Passes).logits(encoding.select(rows))

    def one_by_one() -> None:
        for text in texts:
            attack(model, [text], method, STEPS)

    found = alternately(
        {
            "plain": plain,
            "together": lambda: attack(model, texts, method, STEPS),
            "longer": lambda: attack(model, texts, method, 2 * STEPS),
            "one by one": one_by_one,
        },
        ROUNDS,
        time.process_time,
    )
    step = (found["longer"] - found["together"]) / STEPS
    return {
        "method": name,
        "texts": len(texts),
        "one by one / together": found["one by one"] / found["together"],
        "step, passes": step / found["plain"],
        "step, ms per text": 1000 * step / len(texts),
    }


def main() -> None:
    torch.set_num_threads(1)
    model, texts = minilm(), mixed_texts(TEXTS)
    save("attacks", [measured(model, texts, CATALOGUE.create(name), name) for name in METHODS])


if __name__ == "__main__":
    main()
