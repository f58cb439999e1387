"""The removal that a run states reaches everything that perturbs texts, in audits and in studies of every kind."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
from torch import Tensor

import raison
from raison.core.inputs.encoding import Encoding
from raison.core.model import LanguageModel
from raison.explaining.settings import Settings
from raison.judging import estimate
from raison.models.adapters.checks.throughput import Speed, measure_speed
from raison.models.adapters.classifier import Classifier
from raison.studies.runner import run
from tests import work
from tests.contracts.test_metrics import PERTURBING, expected
from tests.contracts.test_metrics import create as metric_of
from tests.study_files import STUDY, TRAININGS, TRUST

STATED = ("mask", "unk", "pad", "delete")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return work.prepare(tmp_path_factory.mktemp("work"))


@pytest.fixture
def met(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """By which removals perturbed texts have reached any model."""
    seen: set[str] = set()
    plain = Classifier.masked_logits

    def noted(self: Classifier, encoding: Encoding, keeps: Sequence[Tensor], removal: str) -> list[Tensor]:
        if any(not rows.all() for rows in keeps):
            seen.add(removal)
        return plain(self, encoding, keeps, removal)

    def timed(model: LanguageModel, encoding: Encoding) -> Speed:
        # What an audit will take is estimated by passes whose values nobody sees.
        before = set(seen)
        found = measure_speed(model, encoding)
        seen.intersection_update(before)
        return found

    monkeypatch.setattr(Classifier, "masked_logits", noted)
    monkeypatch.setattr(estimate, "measure_speed", timed)
    return seen


def audit(place: Path, out: Path, stated: str) -> None:
    model = raison.load(place / "tiny")
    settings = Settings(removal=stated)
    raison.audit(model, work.TEXTS[2:4], ["occlusion"], out=out, plan=work.AUDIT, settings=settings, progress=False)


def study(place: Path, out: Path, stated: str) -> None:
    metrics = f"metrics = {list(PERTURBING)}"
    text = STUDY.replace('metrics = ["gini", "consistency(batch=8)"]', metrics)
    path = written(place, out, text.replace("[models.one]", f'[settings]\nremoval = "{stated}"\n[models.one]'))
    run(path, out, progress=False)


def trainings(place: Path, out: Path, stated: str) -> None:
    text = TRAININGS.replace('metrics = ["gini"]', 'metrics = ["comprehensiveness", "log_odds"]')
    text = text.replace("[tasks.one]", f'[settings]\nremoval = "{stated}"\n[tasks.one]')
    run(written(place, out, text), out, progress=False)


def trust(place: Path, out: Path, stated: str) -> None:
    text = TRUST.replace('"attention_rollout"', '"occlusion"')
    text = text.replace("[models.one]", f'[settings]\nremoval = "{stated}"\n[models.one]')
    run(written(place, out, text), out, progress=False)


def written(place: Path, out: Path, text: str) -> Path:
    path = out.with_suffix(".toml")
    path.write_text(text.replace("PLACE", str(place)))
    return path


WORKS: Mapping[str, tuple[Callable[[Path, Path, str], None], Sequence[str]]] = {
    "audit": (audit, ("aopc_comprehensiveness", "aopc_sufficiency", "harmless_change")),
    "study": (study, PERTURBING),
    "trainings": (trainings, ("comprehensiveness", "log_odds")),
    "trust": (trust, ()),
}
"""Each kind of work, and the metrics that it measures by."""


@pytest.mark.in_turn(4)
@pytest.mark.parametrize("stated", STATED)
@pytest.mark.parametrize("kind", WORKS)
def test_the_stated_removal_reaches_everything(
    kind: str, stated: str, place: Path, tmp_path: Path, met: set[str]
) -> None:
    """But for metrics whose definition, or own setting, says another: these are the same in every kind."""
    done, metrics = WORKS[kind]
    done(place, tmp_path / "out", stated)
    assert met == {stated, *(expected(metric_of(name), stated) for name in metrics)}
