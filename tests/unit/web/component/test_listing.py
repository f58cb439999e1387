"""Many explanations in a notebook: which become a table, what the table asks, and what is there without a kernel."""

import json
import sys
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import raison
from raison.core.errors import RaisonError
from raison.report.pages.listing import MOST, listing
from raison.web.component import display
from raison.web.rows.in_memory_run import InMemoryRun
from tests.unit.core.settings.test_reading import written
from tests.unit.explaining.test_cite import cite
from tests.unit.report.explanations.test_html import explain

pytest.importorskip("anywidget", reason="no anywidget: pip install 'raison[notebook]'")

TEXTS = ["good film", "bad film", "good <b>bad</b> film", "film", "good good film", "a bad one"]
LABELS = ["yes", "no", "no", "no", "yes", "yes"]


def by_words(texts: list[str]) -> np.ndarray:
    sums = np.array([text.count("good") - 1.5 * text.count("bad") for text in texts])
    yes = 1 / (1 + np.exp(-sums))
    return np.stack([1 - yes, yes], axis=1)


MODEL = raison.load(by_words, classes=["no", "yes"])
EXPLAINED = raison.explain(MODEL, TEXTS, "occlusion", progress=False)
OTHERS = raison.explain(MODEL, TEXTS, "random", progress=False)


WRITTEN = [replace(written(), seed=number) for number in range(5)]
CITED = [cite(seed=number, draws=2) for number in range(5)]


@pytest.fixture
def displayed(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What a notebook is given."""
    shown: list[Any] = []
    output = SimpleNamespace(HTML=lambda markup: markup, display=shown.append)
    shell = SimpleNamespace(config={"IPKernelApp": {}})
    ipython = SimpleNamespace(get_ipython=lambda: shell, display=output)
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", output)
    return shown


def texts(listed: InMemoryRun, **wanted: str) -> dict[str, Any]:
    return listed.answer("runs/texts", {"row": "occlusion", "seed": "0", **wanted})


def test_few_stand_side_by_side_and_many_are_a_table(displayed: list[Any]) -> None:
    raison.show(EXPLAINED[:4])
    assert displayed.pop().count("<article") == 4
    raison.show(EXPLAINED)
    widget = displayed.pop()
    assert widget.get_state()["face"] == "rows"
    # The texts stay in the kernel.
    assert "film" not in json.dumps({name: value for name, value in widget.get_state().items() if name[0] != "_"})
    raison.show(EXPLAINED[:2], labels=[1, "0"])
    assert texts(displayed.pop().listed)["accuracy"]["texts"] == 2


def test_numbers_of_a_column_with_a_missing_one_are_labels(displayed: list[Any]) -> None:
    raison.show(pd.DataFrame({"map": EXPLAINED[:3], "label": [0, 1, None]}))
    assert texts(displayed.pop().listed)["accuracy"]["texts"] == 2


def test_a_frame_has_explanations_and_labels_in_columns(displayed: list[Any]) -> None:
    frame = pd.DataFrame({"text": TEXTS, "map": EXPLAINED, "label": [*LABELS[:5], None]})
    raison.show(frame)
    told = texts(displayed.pop().listed)
    assert [line["label"] for line in told["rows"]] == [*LABELS[:5], None]
    raison.show(frame["map"])
    assert texts(displayed.pop().listed)["accuracy"] is None
    for wrong in (frame[["text"]], frame.assign(more=OTHERS)):
        with pytest.raises(RaisonError, match="show one column"):
            raison.show(wrong)


@pytest.mark.parametrize(("labels", "said"), [(["yes"], "1 labels for 6"), (["so"] * 6, "the label 'so' is none of")])
def test_labels_of_something_else_are_refused(displayed: list[Any], labels: list[str], said: str) -> None:
    with pytest.raises(RaisonError, match=said):
        raison.show(EXPLAINED, labels=labels)
    assert not displayed


def test_labels_of_something_else_are_refused_in_a_terminal_too(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(RaisonError, match="the label 'so' is none of"):
        raison.show(EXPLAINED, labels=["so"] * 6)
    assert not capsys.readouterr().out
    raison.show(EXPLAINED[:2], labels=[1, "0"])
    assert capsys.readouterr().out


@pytest.mark.parametrize(("results", "said"), [(WRITTEN, "sea"), (CITED, "who founded it")], ids=["out", "cited"])
def test_what_was_written_is_a_table_too(displayed: list[Any], results: list[Any], said: str) -> None:
    raison.show(pd.DataFrame({"found": results, "label": ["x"] * len(results)}))
    listed = displayed.pop().listed
    [run] = listed.answer("runs", {})["runs"]
    assert (run["gives"], run["texts"], run["labelled"]) == ("answer" if results is CITED else "output", 5, False)
    [line, *_] = listed.answer("runs/texts", {"row": run["rows"][0]["label"], "sort": "size"})["rows"]
    first = results[0]
    assert line["size"] == len(first.statements if results is CITED else first.tokens)
    assert said in (line["text"], line["prediction"])
    # The source with the highest score of any statement, or the only unit.
    assert line["strongest"][0]["text"] == ("owl" if results is CITED else "the")
    found = listed.answer("runs/explanation", {"row": first.method, "number": "4"})
    assert type(first).from_dict(found) == results[4]
    slices = listed.answer("runs/slices", {"row": first.method})["slices"]
    assert not [one for one in slices if one["by"] == "prediction"]
    with pytest.raises(RaisonError, match="words are counted for explanations of predictions"):
        listed.answer("runs/words", {"row": first.method})
    html = listing(results, [None] * 5)
    assert html.count("<details><summary>") == 5 + html.count("How this was computed")
    assert html.count(said) >= 5


def test_numbers_are_sorted_and_filtered_by_their_value() -> None:
    values = (0.5, -2.0, 3.25)
    numbers = [explain("so good", (0.1, 4.0), classes=("stars",), outputs="number", probabilities=(), of="logit",
                       target="stars", value_full=value) for value in values]  # fmt: skip
    listed = InMemoryRun(numbers)
    found = texts(listed, sort="value", descending="true")
    assert [line["value"] for line in found["rows"]] == sorted(values, reverse=True)
    assert [line["value"] for line in texts(listed, above="-2", below="0.5")["rows"]] == [0.5, -2.0]
    assert texts(InMemoryRun(EXPLAINED), above="0")["matching"] == 0


def test_without_anywidget_the_table_is_plain_html(displayed: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(display, "find_spec", lambda name: None)
    raison.show(EXPLAINED)
    assert displayed == [listing(EXPLAINED, [None] * 6)]


def test_plain_html_is_escaped_and_bounded() -> None:
    html = listing(EXPLAINED, LABELS)
    assert "<b>bad" not in html
    assert "good &lt;b&gt;bad&lt;/b&gt; film" in html
    assert html.count("<details>") == 6
    many = listing([EXPLAINED[0]] * (MOST + 1), [None] * (MOST + 1))
    assert many.count("<details>") == MOST
    assert f"{MOST + 1} explanations, the first {MOST}" in many


def test_slices_are_cut_from_the_list() -> None:
    listed = InMemoryRun(EXPLAINED, LABELS)
    [run] = listed.answer("runs", {})["runs"]
    assert (run["texts"], run["labelled"], run["unit"], run["model"]) == (6, True, "word", EXPLAINED[0].model)
    wrong = texts(listed, wrong="true", sort="confidence", descending="true", count="1")
    assert (wrong["texts"], wrong["matching"]) == (6, 1)
    [line] = wrong["rows"]
    assert (line["text"], line["label"], line["prediction"]) == ("a bad one", "yes", "no")
    strongest = line["strongest"][0]
    assert (strongest["text"], strongest["said"][0]) == ("bad", "+")
    assert strongest["score"] == max(EXPLAINED[5].scores)
    assert texts(listed, word="bad", least="3")["matching"] == 2
    found = listed.answer("runs/explanation", {"row": "occlusion", "number": "5"})
    assert raison.Explanation.from_dict(found) == EXPLAINED[5]
    slices = listed.answer("runs/slices", {"row": "occlusion"})["slices"]
    assert [one["texts"] for one in slices if one["by"] == "label"] == [3, 3]
    assert listed.answer("runs/words", {"row": "occlusion"})["texts"] == 6


def test_each_method_is_a_row_and_a_text_keeps_its_number() -> None:
    seeded = [replace(e, method="lime", config={"samples": number}) for number, e in enumerate(EXPLAINED[:2])]
    listed = InMemoryRun([*EXPLAINED, *OTHERS, *seeded])
    rows = [row["label"] for row in listed.answer("runs", {})["runs"][0]["rows"]]
    assert rows == ["occlusion", "random", "lime(samples=0)", "lime(samples=1)"]
    found = listed.answer("runs/texts", {"row": "random"})
    assert [line["number"] for line in found["rows"]] == list(range(6, 12))


@pytest.mark.parametrize(
    ("ask", "body", "said"),
    [
        ("runs/texts", {"row": "lime"}, "unknown row"),
        ("runs/texts", {"row": "occlusion", "least": "many"}, "least cannot be 'many'"),
        ("runs/texts", {"row": "occlusion", "colour": "red"}, "unknown field"),
        ("runs/texts", {"row": "occlusion", "sort": "colour"}, "unknown order"),
        ("runs/texts", {"row": "occlusion", "count": "9999"}, "1 to 200"),
        ("runs/explanation", {"row": "occlusion", "number": "6"}, "no text 6"),
        ("runs/explanation", {"row": "occlusion"}, "number"),
        ("runs/away", {}, "unknown question"),
    ],
)
def test_mistakes_are_one_line(ask: str, body: dict[str, str], said: str) -> None:
    with pytest.raises(RaisonError, match=said) as refused:
        InMemoryRun(EXPLAINED).answer(ask, body)
    assert "\n" not in str(refused.value)
