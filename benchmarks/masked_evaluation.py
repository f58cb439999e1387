"""Masked evaluation against the model's own best forward throughput.

64 texts of mixed length, 200 keeps each. The yardstick is the same model called on unpadded batches of one length, at
the batch size where it is fastest. Reported in tokens per second (padding not counted) and as a ratio.
"""

import statistics

import torch
from common import minilm, mixed_texts, save, seconds

from raison.models.adapters.classifier import Classifier

TEXTS, KEEPS, ROUNDS = 64, 200, 3
BATCH_SIZES = (16, 32, 64, 96, 128, 256)


def best_forward(model: Classifier, length: int) -> tuple[int, float]:
    """The batch size with the highest throughput on sequences of the given length, and its tokens per second."""
    best = (0, 0.0)
    for size in BATCH_SIZES:
        ids = torch.randint(1000, 20000, (size, length), generator=torch.Generator().manual_seed(size))
        repeats = max(1, 6_000 // (size * length))

        def run(ids: torch.Tensor = ids, repeats: int = repeats) -> None:
            with torch.no_grad():
                for _ in range(repeats):
                    model.model(input_ids=ids)

        run()
        speed = ids.numel() * repeats / min(seconds(run) for _ in range(2))
        best = max(best, (size, speed), key=lambda found: found[1])
    return best


def main() -> None:
    model = minilm()
    encoding = model.encode(mixed_texts(TEXTS), "word")
    generator = torch.Generator().manual_seed(0)
    keeps = [torch.rand(KEEPS, count, generator=generator) < 0.5 for count in encoding.unit_counts]
    mean = round(sum(encoding.lengths) / TEXTS)
    tokens = {
        "mask": KEEPS * sum(encoding.lengths),
        "delete": sum(
            int(torch.cat([keep, keep.new_ones(KEEPS, 1)], 1)[:, encoding.unit_ids[text, :length]].sum())
            for text, (keep, length) in enumerate(zip(keeps, encoding.lengths, strict=True))
        ),
    }
    rows = []
    for removal, count in tokens.items():
        length = mean if removal == "mask" else round(count / (TEXTS * KEEPS))
        ratios, speeds, sizes = [], [], []
        for _ in range(ROUNDS):
            size, best = best_forward(model, length)
            speed = count / seconds(lambda removal=removal: model.masked_logits(encoding, keeps, removal))
            ratios.append(speed / best)
            speeds.append(speed)
            sizes.append(size)
        rows.append(
            {
                "removal": removal,
                "texts x keeps": f"{TEXTS} x {KEEPS}",
                "mean tokens": length,
                "best batch size": statistics.mode(sizes),
                "tokens/s": float(round(statistics.median(speeds))),
                "of best forward": statistics.median(ratios),
                "lowest": min(ratios),
                "highest": max(ratios),
            }
        )
    save("masked_evaluation", rows)


if __name__ == "__main__":
    main()
