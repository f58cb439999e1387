"""What it costs a comparison to write after fewer texts: processor time by the number of texts written together.

Short texts and methods of few passes lose most, because batches of one text are small. `seconds between writes` is what
a kill may lose. The number that a run itself chooses (raison.judging.plan.texts_together) stands last.
"""

import time
from collections.abc import Callable
from unittest.mock import patch

from common import alternately, minilm, mixed_texts, save

import raison
from raison.judging import plan

COUNT, ROUNDS, SIZES = 16, 3, (16, 4, 1)
METHODS = {
    "few passes": ("saliency", "input_x_gradient", "attention_rollout", "deep_lift"),
    "usual": ("integrated_gradients", "kernel_shap(samples=100)", "occlusion", "saliency"),
}


def main() -> None:
    """Measure both sets of methods on the same texts."""
    model, texts, rows = minilm(), mixed_texts(COUNT), []
    for name, methods in METHODS.items():
        chosen: list[int] = []
        own = plan.texts_together

        def compared(size: int, methods: tuple[str, ...] = methods) -> Callable[[], object]:
            def work() -> object:
                with patch.object(plan, "texts_together", lambda _: size):
                    return raison.compare(model, texts, methods, progress=False)

            return work

        def asked(asked_plan: plan.Plan, own: Callable[[plan.Plan], int] = own, chosen: list[int] = chosen) -> int:
            chosen.append(own(asked_plan))
            return chosen[-1]

        with patch.object(plan, "texts_together", asked):
            raison.compare(model, texts, methods, progress=False)
        took = alternately({str(size): compared(size) for size in SIZES}, ROUNDS, time.process_time)
        for size in SIZES:
            seconds = took[str(size)]
            rows.append(
                {
                    "methods": name,
                    "texts together": size,
                    "processor time, ratio to 16": round(seconds / took["16"], 3),
                    "seconds between writes": round(seconds * size / COUNT, 2),
                    "chosen by the run": chosen[0],
                }
            )
    save("written_together", rows)


if __name__ == "__main__":
    main()
