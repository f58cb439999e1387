"""Models of which not every question of an audit can be asked are audited on the others."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
import torch

import raison
from raison.core.model import LanguageModel
from raison.studies.kinds.audit.spec import AuditPlan
from raison.studies.reports import write
from raison.text.prompts import Prompt
from tests.contracts.test_quantised import Stored, dynamic, stored
from tests.fake_server import Fake, running
from tests.tiny import build

ENDS = ("the old sailor told a story", "a dull plot")
TEXTS = [f"{start} {end}" for start in ("so", "but", "and", "as if") for end in ENDS]
PLAN = AuditPlan(randomised=2, changed=4, attacked=2)


@contextmanager
def served() -> Iterator[LanguageModel]:
    words = Prompt(name="film", task="", shot="{text} It is{label}", labels={"bad": " terrible", "good": " great"})
    with running(Fake()) as fake:
        yield raison.load(fake.base, prompt=words)


@contextmanager
def of_shared_layers() -> Iterator[LanguageModel]:
    yield raison.load(*build("albert"))


@contextmanager
def stored_as_integers() -> Iterator[LanguageModel]:
    model, tokenizer = build("bert")
    for module in stored(model, rounds_inputs=False).modules():
        if isinstance(module, Stored):
            weight = module._buffers.pop("weight")
            assert weight is not None
            module.weight = torch.nn.Parameter(weight, requires_grad=False)
    yield raison.load(model, tokenizer)


@contextmanager
def quantised() -> Iterator[LanguageModel]:
    model, tokenizer = build("bert")
    yield raison.load(dynamic(model), tokenizer)


@pytest.mark.parametrize(
    ("model", "reasons"),
    [
        (
            served,
            {
                "randomised": "the model is behind a server, whose parameters are unknown",
                "exchanged words": "behind a server, which has no embeddings of similar words",
            },
        ),
        (of_shared_layers, {"randomised": "its layers share parameters"}),
        (quantised, {"randomised": "they are quantised", "shifted embeddings": "no gradient"}),
        (stored_as_integers, {"randomised": "is quantised, offloaded or of another type"}),
    ],
)
def test_what_cannot_be_asked_is_left_out_with_its_reason(
    model: Callable[[], AbstractContextManager[LanguageModel]], reasons: dict[str, str], tmp_path: Path
) -> None:
    with model() as loaded:
        found = raison.audit(loaded, TEXTS, ["occlusion"], out=tmp_path / "audit", plan=PLAN, progress=False)
    done, wanted = found.progress
    assert done == wanted > 0
    lights = {part.question: part.light for part in found.methods[0].evidence}
    assert lights["faithful"] in ("green", "amber", "red")
    told = dict(found.left_out)
    for part, reason in reasons.items():
        assert any(part in what and reason in why for what, why in told.items()), told
    page = write(tmp_path / "audit", draw=False).read_text(encoding="utf-8")
    assert ("of which only the outputs are known" in page) == (model is served)
    if "randomised" in reasons:
        assert lights["parameters"] == "grey"
        assert "Randomised blocks" not in page
