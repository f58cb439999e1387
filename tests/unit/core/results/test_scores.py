"""Results as plain data."""

import importlib
import json
import math
import re
from dataclasses import asdict, replace

import pytest

from raison.core.errors import DataError, UnknownNameError
from raison.core.results import scores
from raison.core.results.scores import Comparison, MetricScores, Scores, Summary
from raison.core.results.views import View

ONE = Summary(1.0, 0.5, 1.5, 4)
ROW = Scores(
    "rpi",
    (MetricScores("log_odds", False, (0.5, math.nan), Summary(0.5, math.nan, math.nan, 1)),),
    evaluations=ONE,
    gradients=ONE,
    seconds=ONE,
)
TABLE = Comparison((ROW,), "demo/sst2", "sst2", 2, "word", "logit", 0, {"removal": "mask"})


def test_found_by_name() -> None:
    assert TABLE["rpi"]["log_odds"].values[0] == 0.5
    with pytest.raises(UnknownNameError, match="Did you mean 'log_odds'"):
        ROW["log_od"]
    with pytest.raises(UnknownNameError, match="unknown method 'x'"):
        TABLE["x"]


def test_json_has_no_nan() -> None:
    data = json.loads(TABLE.to_json())
    assert data == TABLE.to_dict()
    metric = data["rows"][0]["metrics"][0]
    assert metric["values"] == [0.5, None]
    assert metric["summary"] == {"mean": 0.5, "low": None, "high": None, "count": 1}
    assert data["settings"] == {"removal": "mask"}
    assert json.loads(ROW.to_json()) == data["rows"][0]


def test_json_reads_back() -> None:
    of_label = replace(TABLE, by_target={"good": TABLE}, rows=(replace(ROW, by_target={"good": ROW}),))
    parts = MetricScores("f1", None, (0.5,), ONE, "micro", ((1.0, math.nan), (2.0, 3.0)), (0.25,))
    for table in (TABLE, of_label, replace(TABLE, rows=(replace(ROW, metrics=(parts,), selected_by="log_odds"),))):
        read = Comparison.from_json(table.to_json())
        assert read.to_dict() == table.to_dict()
        # NaN is unequal to itself.
        assert repr(read.records()) == repr(table.records())
        assert str(asdict(read)) == str(asdict(table))
    assert str(asdict(Scores.from_json(ROW.to_json()))) == str(asdict(ROW))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"texts": "2"}, "not a comparison: texts is '2'; it must be a whole number of at least 0."),
        ({"rows": {}}, "not a comparison: rows is {}; it must be a list."),
        ({"settings": []}, "not a comparison: settings is []; it must be an object."),
        ({"by_target": {"good": 1}}, "not a comparison: by_target: good is 1; it must be an object."),
        ({"rows": [{}]}, "not a comparison: rows[0]: the fields evaluations, gradients, method, "),
    ],
)
def test_what_is_no_comparison_is_refused(change: dict[str, object], said: str) -> None:
    with pytest.raises(DataError, match=f"^{re.escape(said)}"):
        Comparison.from_json(json.dumps({**TABLE.to_dict(), **change}))


def test_fields_that_are_newer_than_a_file_have_their_defaults() -> None:
    data = TABLE.to_dict()
    for newer in ("settings", "cautions", "by_target"):
        data.pop(newer)
    read = Comparison.from_json(json.dumps(data))
    assert (read.settings, read.cautions, read.by_target) == ({}, (), {})


def test_a_number_that_is_none_is_named_by_its_place() -> None:
    data = TABLE.to_dict()
    data["rows"][0]["metrics"][0]["values"][1] = "high"
    with pytest.raises(DataError, match=r"rows\[0\]: metrics\[0\]: values: 1 is 'high'; it must be a finite number"):
        Comparison.from_json(json.dumps(data))
    data = TABLE.to_dict()
    data["rows"][0]["metrics"][0]["texts"] = [0]
    with pytest.raises(DataError, match=r"metrics\[0\]: texts is \[0\]; it must be a number for each value, or empty"):
        Comparison.from_json(json.dumps(data))
    with pytest.raises(DataError, match="not a comparison: the fields data, model"):
        Comparison.from_json("{}")
    with pytest.raises(DataError, match="not a comparison: expected a JSON object"):
        Comparison.from_json("[]")


def test_frame_has_a_row_per_method_and_metric() -> None:
    frame = TABLE.to_frame()
    assert list(frame["metric"]) == ["log_odds", "evaluations", "gradients", "seconds"]
    assert list(frame.columns) == ["method", "metric", "higher_is_better", "mean", "low", "high", "count"]
    assert ROW.to_frame().equals(frame)


def test_is_shown_by_the_renderers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scores, "rendered", lambda shown, view: f"{view.name} of {type(shown).__name__}")
    assert str(ROW) == "RESULTS_TEXT of Scores"
    assert str(TABLE) == "RESULTS_TEXT of Comparison"
    assert ROW._repr_html_() == "RESULTS_FRAGMENT of Scores"
    assert TABLE._repr_html_() == "RESULTS_FRAGMENT of Comparison"
    assert TABLE.to_html() == "RESULTS_PAGE of Comparison"
    assert TABLE.to_markdown() == "MARKDOWN of Comparison"
    assert TABLE.to_latex() == "LATEX of Comparison"
    assert TABLE.to_csv() == "CSV of Comparison"


@pytest.mark.parametrize("view", View)
def test_every_view_has_its_function(view: View) -> None:
    module, function = view.rsplit(".", 1)
    assert callable(vars(importlib.import_module(f"raison.report.{module}"))[function])


def test_repr_is_one_line() -> None:
    assert repr(ROW) == "<Scores of rpi: log_odds 0.500>"
    assert repr(TABLE) == "<Comparison of rpi on 2 texts>"
