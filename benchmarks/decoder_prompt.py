"""Masked versions of an input behind a few-shot prompt, on SmolLM2: what each way of sharing work is worth.

A prompt of 92 tokens, 64 random keeps of a 13-token input (removed tokens become one fixed token), an answer cue after
it, two label words. All ways run the same model in the same precision and give probabilities over the two labels; a
prompt's cache counts as computed once for all 64, inside the time.
"""

from collections.abc import Callable

import torch
from common import WORDS, alternately, save
from torch import Tensor
from transformers import AutoModelForCausalLM, AutoTokenizer, DynamicCache, PreTrainedModel

from raison.models.loading.ready_made import base_weights
from raison.models.passes.batching import TokenBudget, default_budget
from raison.models.passes.prefixes.packing import PackedReader
from raison.models.stack.caches import given_cache

PROMPT, INPUT, KEEPS, ROUNDS = 92, 13, 64, 3
CUE = "\nSentiment:"
LABELS = (" negative", " positive")
FULL_ROWS, CACHED_ROWS = 16, 64


def case(tokenizer: Callable[..., dict[str, list[int]]]) -> tuple[Tensor, Tensor, list[int]]:
    """The prompt's ids, the 64 rows that follow it, and the ids of the label words."""
    generator = torch.Generator().manual_seed(0)
    order = torch.randint(0, len(WORDS), (400,), generator=generator).tolist()
    words = [WORDS[number] for number in order]
    shots = "".join(
        f"Review: {' '.join(words[10 * shot : 10 * shot + 10])}{CUE}{LABELS[shot % 2]}\n\n" for shot in range(20)
    )
    prompt = torch.tensor(tokenizer(shots)["input_ids"][-PROMPT:])
    text = torch.tensor(tokenizer(" " + " ".join(words[300:]))["input_ids"][:INPUT])
    removed = torch.tensor(tokenizer(" _")["input_ids"][0])
    cue = torch.tensor(tokenizer(CUE)["input_ids"])
    keeps = torch.rand(KEEPS, INPUT, generator=generator) < 0.5
    rows = torch.cat([torch.where(keeps, text, removed), cue.expand(KEEPS, -1)], 1)
    return prompt, rows, [tokenizer(label)["input_ids"][0] for label in LABELS]


def ways(model: PreTrainedModel, prompt: Tensor, rows: Tensor, labels: list[int]) -> dict[str, Callable[[], Tensor]]:
    """Each way as a function that gives the labels' probabilities for all rows."""
    whole = torch.cat([prompt.expand(len(rows), -1), rows], 1)
    matrix = model.lm_head.weight[labels]
    reader = PackedReader(model.base_model, TokenBudget(default_budget(torch.device("cpu"))))

    def full(last_only: bool, size: int = FULL_ROWS) -> Tensor:
        found = [
            model(input_ids=part, logits_to_keep=int(last_only), use_cache=False).logits for part in whole.split(size)
        ]
        return torch.cat([logits[:, -1, labels] for logits in found]).softmax(-1)

    def cached() -> Tensor:
        stored = DynamicCache()
        model.base_model(input_ids=prompt[None], use_cache=True, **given_cache(model.base_model, stored))
        found = []
        for part in rows.split(CACHED_ROWS):
            layers = [
                (keys.expand(len(part), -1, -1, -1), values.expand(len(part), -1, -1, -1)) for keys, values, _ in stored
            ]
            known = given_cache(model.base_model, DynamicCache(layers))
            output = model.base_model(input_ids=part, use_cache=True, **known)
            found.append(output.last_hidden_state[:, -1] @ matrix.T)
        return torch.cat(found).softmax(-1)

    def packed() -> Tensor:
        # A write to a parameter makes the reader forget its prompts.
        with torch.no_grad():
            [*model.base_model.parameters()][-1].add_(0)
        states = reader.states(prompt, list(rows), [[whole.shape[1] - 1]] * len(rows))
        assert reader.packs
        return (torch.cat(states) @ matrix.T).softmax(-1)

    return {
        "full re-runs one by one": lambda: full(True, 1),
        "full re-runs, logits of all positions": lambda: full(False),
        "full re-runs, logits of the last position": lambda: full(True),
        "prompt cached, rows batched, label rows": cached,
        "prompt cached, beginnings shared, packed (raison)": packed,
    }


@torch.no_grad()
def main() -> None:
    folder = base_weights.fetch("smollm2")
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    prompt, rows, labels = case(AutoTokenizer.from_pretrained(folder))
    works = ways(model, prompt, rows, labels)
    # The yardstick of the numbers; the first pass of the others warms up.
    wanted = works.pop("full re-runs one by one")()
    worst = {name: float((work() - wanted).abs().max()) for name, work in works.items()}
    times = alternately(works, ROUNDS)
    slowest = times["full re-runs, logits of all positions"]
    save(
        "decoder_prompt",
        [
            {
                "way": name,
                "s": time,
                "all positions / this": slowest / time,
                "largest difference in probability": worst[name],
            }
            for name, time in times.items()
        ],
    )


if __name__ == "__main__":
    main()
