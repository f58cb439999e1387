"""How many texts of a comparison are written together: fewer where a minute's work is fewer."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import raison
from raison.explaining.measuring import create_metrics
from raison.judging import plan as planning
from raison.judging.plan import Plan, header_of, plan_rows, texts_together
from raison.methods import CATALOGUE
from raison.runs.headers import MOST_TOGETHER
from raison.runs.run import read_run
from tests.tiny import TINY

TEXTS = ("a good film", "a dull film with a loud end", "not good", "quiet pleasure") * 5


def planned(method: str, model: Any = None, seeds: tuple[int, ...] = (0,), choosers: Sequence[str] = ()) -> Plan:
    rows = plan_rows([CATALOGUE.create(method)], create_metrics(list(choosers)), seeds)
    return Plan(
        model or raison.load(*TINY["bert"]()), TEXTS, (), rows, (), planning.Settings(of="probability"), "texts"
    )


def test_small_work_fills_batches() -> None:
    plan = planned("occlusion")
    assert texts_together(plan) == MOST_TOGETHER
    assert header_of(plan).together == MOST_TOGETHER


def test_more_passes_are_fewer_texts_but_one_at_least(monkeypatch: pytest.MonkeyPatch) -> None:
    model = raison.load(*TINY["bert"]())
    monkeypatch.setattr(planning, "_WORK", 1e8)
    few, more = (texts_together(planned(f"lime(samples={samples})", model)) for samples in (16, 64))
    assert MOST_TOGETHER >= few > more > 1
    assert texts_together(planned("lime(samples=64)", model, (0, 1))) == more // 2
    monkeypatch.setattr(planning, "_WORK", 1.0)
    assert header_of(planned("occlusion", model)).together == 1


def test_maps_that_metrics_choose_from_are_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    model = raison.load(*TINY["bert"]())
    monkeypatch.setattr(planning, "_WORK", 4e9)
    alone = texts_together(planned("rpi(steps=8)", model))
    assert MOST_TOGETHER > alone > 1
    assert texts_together(planned("rpi(steps=8)", model, choosers=["comprehensiveness", "sufficiency"])) == alone


def test_a_run_is_continued_with_the_chunks_that_it_began_with(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    model = raison.load(*TINY["bert"]())
    asked = (model, TEXTS, ["occlusion"], ["sufficiency"])
    whole = raison.compare(*asked, out=tmp_path / "whole", progress=False)

    def stop(_count: int) -> None:
        raise LookupError("enough")

    with pytest.raises(LookupError):
        raison.compare(*asked, out=tmp_path / "run", progress=stop)
    monkeypatch.setattr(planning, "_WORK", 1.0)
    assert texts_together(planned("occlusion", model)) == 1
    continued = raison.compare(*asked, out=tmp_path / "run", progress=False)
    assert continued["occlusion"]["sufficiency"].values == whole["occlusion"]["sufficiency"].values
    assert read_run(tmp_path / "run").header.together == MOST_TOGETHER


def test_of_a_function_nothing_is_known() -> None:
    function = raison.load(lambda texts: [[0.5, 0.5] for _ in texts], classes=["no", "yes"])
    assert texts_together(planned("kernel_shap(samples=100000000)", function)) == MOST_TOGETHER


def test_some_predictions_keep_the_numbers_of_their_texts() -> None:
    plan = replace(planned("occlusion"), numbers=tuple(number // 2 for number in range(len(TEXTS))))
    assert header_of(plan).text_numbers == plan.numbers
    assert header_of(plan.of_texts([1, 4, 5])).text_numbers == (0, 2, 2)
