"""Figures over models: lines over sizes, bars over architectures, in the report of an ordinary study as well."""

import json
import re
from pathlib import Path

import pytest

from raison.core.results.scores import Summary
from raison.report.figures.data import OverModels, Series
from raison.report.figures.plots import drawn
from raison.report.tables.records import Plots
from raison.runs.models_figure import Axis, FiguredModel, axis_of, parameter_count
from raison.studies.kinds.comparison.results import read
from raison.studies.reports import document_of
from tests.study_folder import Made, make

SIZES = (FiguredModel("big", 40_000_000), FiguredModel("small", 1_000_000), FiguredModel("middle", 6_500_000))


def series(*means: float | None) -> Series:
    values = tuple(None if mean is None else Summary(mean, mean - 0.1, mean + 0.1, 9) for mean in means)
    return Series("saliency", 0, values)


def figure(axis: Axis, models: tuple[FiguredModel, ...] = SIZES, *more: Series) -> str:
    return drawn(OverModels("f", "rank change", axis, models, (series(0.3, 0.7, None), *more)))


def test_lines_stand_over_sizes_by_their_size() -> None:
    svg = figure("parameters")
    assert "over parameters" in svg
    places = {text: svg.index(f">{text}<") for text in ("1M", "6.5M", "40M")}
    assert list(places.values()) == sorted(places.values())
    assert ">big<" not in svg


def test_bars_stand_over_names() -> None:
    svg = figure("model")
    assert all(f">{place.name}<" in svg for place in SIZES)
    assert "over parameters" not in svg


def test_models_of_unknown_size_become_bars() -> None:
    assert ">big<" in figure("parameters", (*SIZES[:2], FiguredModel("middle")))


def test_what_bars_are_held_against_is_a_line_across_them() -> None:
    other = Series("saliency", 0, series(0.1, 0.1, 0.1).values, "dotted")
    dashes = [len(re.findall("stroke-dasharray", figure("model", SIZES, *more))) for more in ((), (other,))]
    assert dashes[1] > dashes[0]


def test_small_numbers_on_an_axis_are_written_out() -> None:
    tiny = (Series("saliency", 0, (Summary(0.0007, 0.0006, 0.0008, 9),)),)
    assert ">0.0006<" in drawn(OverModels("f", "top-k sum change", "model", SIZES[:1], tiny))


@pytest.mark.parametrize(("size", "text"), [(950, "950"), (22_713_216, "22.7M"), (110_000_000, "110M"), (4_000, "4k")])
def test_sizes_are_told_shortly(size: int, text: str) -> None:
    assert parameter_count(size) == text


def test_only_known_axes_are_asked_for() -> None:
    assert axis_of({"figure": {"x": "model"}}) == "model"
    assert axis_of({"figure": {"x": "depth"}}) is None
    assert axis_of({}) is None


@pytest.mark.parametrize(("axis", "caption"), [("parameters", "over parameters"), ("model", "of each model")])
def test_an_ordinary_study_draws_what_it_asks_for(tmp_path: Path, axis: str, caption: str) -> None:
    """The figures over models are drawn here; those of each model are the same in every report."""
    folder = make(tmp_path / "study", Made(models=("small", "wide"), texts=4, finished=4, explanations=False))
    path = folder / "study.toml"
    path.write_text(path.read_text(encoding="utf-8") + f'\n[figure]\nx = "{axis}"\n', encoding="utf-8")
    header = json.loads((folder / "study.json").read_text())
    header["models"] = {run.partition("--")[0]: {"parameters": 10**6 * (n + 1)} for n, run in enumerate(header["runs"])}
    (folder / "study.json").write_text(json.dumps(header))
    parts = [part for section in document_of(read(folder)).sections for part in section.parts]
    figures = [
        plot for part in parts if isinstance(part, Plots) for plot in part.figures if isinstance(plot, OverModels)
    ]
    assert {plot.axis for plot in figures} == {axis}
    assert caption in drawn(figures[0])
