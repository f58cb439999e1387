"""A step of training MiniLM, cut to its lowest layers, with AdamW as one kernel and as torch's default, in turns."""

import time
from functools import partial

import torch
from common import WORDS, alternately, save
from torch import nn
from transformers import PreTrainedModel

from raison.models.loading.ready_made import base_weights, zoo

ROWS, TOKENS, ROUNDS = 32, 24, 9


def update(optimizer: torch.optim.Optimizer) -> None:
    optimizer.step()


def whole(model: PreTrainedModel, optimizer: torch.optim.Optimizer, batch: dict[str, torch.Tensor]) -> None:
    """Passes, clipping and update, as the trainer makes them."""
    model(**batch).loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()


def measured(layers: int) -> dict[str, object]:
    """Processor time of the two ways on equal models, and their ratio."""
    torch.manual_seed(0)
    model, _ = zoo.fresh_classifier(base_weights.fetch("minilm"), tuple(WORDS[:3]), layers=layers)
    model.train()
    ids = torch.randint(1000, 20_000, (ROWS, TOKENS))
    batch = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": torch.randint(0, 3, (ROWS,))}
    ways = {fused: torch.optim.AdamW(model.parameters(), lr=1e-6, fused=fused) for fused in (True, False)}
    for optimizer in ways.values():
        whole(model, optimizer, batch)
    steps = {str(fused): partial(whole, model, optimizer, batch) for fused, optimizer in ways.items()}
    model(**batch).loss.backward()
    updates = {f"update {fused}": partial(update, optimizer) for fused, optimizer in ways.items()}
    taken = alternately(updates, ROUNDS, time.process_time) | alternately(steps, ROUNDS, time.process_time)
    return {
        "layers": layers,
        "update, one kernel, ms": 1000 * taken["update True"],
        "update, default, ms": 1000 * taken["update False"],
        "ratio of updates": taken["update True"] / taken["update False"],
        "ratio of whole steps": taken["True"] / taken["False"],
    }


def main() -> None:
    torch.set_num_threads(1)
    save("training_step", [measured(layers) for layers in (1, 3, 6)])


if __name__ == "__main__":
    main()
