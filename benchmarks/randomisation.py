"""Randomisation curves: what is saved by keeping the work of the blocks below the randomised ones.

A few texts, both orders, every depth of demo/sst2. Passes over single blocks are counted in rows (a row of a batch
through one block is one), the original model's explanations left out; time is that of the process.
"""

import sys
import time
from dataclasses import replace

from common import mixed_texts, save

import raison
from raison.core.problem import Evaluations
from raison.explaining.attribution import run
from raison.explaining.batch import prepare
from raison.explaining.settings import Settings
from raison.models.adapters.classifier import Classifier
from raison.models.derived.randomised import STORED_BYTES, RandomisedModels
from raison.models.stack.blocks import find_blocks

TEXTS = 4
METHODS = ("occlusion", "kernel_shap(samples=128)", "integrated_gradients(steps=10)", "attention_rollout")


def curves(model: Classifier, texts: list[str], method: str, stored: int) -> int:
    """Both curves of a method; the rows that went through a block, summed over blocks."""
    batch = prepare(model, texts, Settings())
    models = RandomisedModels(model, stored=stored)
    rows = 0

    def count(_module: object, args: tuple[object, ...]) -> None:
        nonlocal rows
        rows += len(args[0])  # type: ignore[arg-type]

    for blocks in range(models.count, 0, -1):
        for numbers in dict.fromkeys([tuple(range(1, blocks + 1)), (blocks,)]):
            other = models.model(numbers)
            for block in find_blocks(other.core):
                # The block itself is called also when it gives what is stored.
                block.attention.self.query.register_forward_pre_hook(count)
            changed = replace(batch, model=other, evaluations=Evaluations(), maps={})
            run(changed, raison.methods.CATALOGUE.create(method))
    return rows


def main() -> None:
    model = raison.load("demo/sst2")
    assert isinstance(model, Classifier)
    texts = mixed_texts(int(sys.argv[1]) if len(sys.argv) > 1 else TEXTS)
    rows = []
    for method in METHODS:
        passes: dict[str, int] = {}
        times: dict[str, float] = {}
        for kind, stored in (("whole", 0), ("kept", STORED_BYTES)):
            started = time.process_time()
            passes[kind] = curves(model, texts, method, stored)
            times[kind] = time.process_time() - started
        rows.append(
            {
                "method": method,
                "texts": len(texts),
                "block passes, whole": passes["whole"],
                "block passes, kept": passes["kept"],
                "share of passes": passes["kept"] / passes["whole"],
                "seconds, whole": times["whole"],
                "seconds, kept": times["kept"],
                "share of time": times["kept"] / times["whole"],
            }
        )
    save("randomisation", rows)


if __name__ == "__main__":
    main()
