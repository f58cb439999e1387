"""Explanations where the caller is: side by side in the terminal and in a notebook."""

import io
import re
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest
from rich.console import Console

import raison
from raison.core.errors import InputError
from raison.core.inputs.unit import Unit
from raison.report.explanations.html import beside
from raison.report.explanations.terminal import beside_text
from raison.report.style.terminal_text import plain
from tests.unit.core.results.test_generation import explanation as written
from tests.unit.report.explanations.test_html import REVIEW, explain

SMALL = tuple(0.01 * number for number in range(1, 13))
LARGE = tuple(-0.1 * number for number in range(1, 13))


def test_show_prints_what_the_terminal_view_says(capsys: pytest.CaptureFixture[str]) -> None:
    explain(REVIEW).show()
    assert "Predicted" in capsys.readouterr().out
    written().show()
    assert "Written" in capsys.readouterr().out


def test_explanations_side_by_side_have_one_scale() -> None:
    """The weaker explanation has shorter bars and paler colours than alone."""
    pair = [explain(REVIEW, SMALL), explain(REVIEW, LARGE)]
    page = beside(pair)
    widths = [float(width) for width in re.findall(r"width:([\d.]+)%", page)]
    # A bar has half the axis; the strongest unit of the weaker explanation is a tenth of the other's.
    assert max(widths) == 50
    assert max(widths[: len(widths) // 2]) == pytest.approx(5, abs=0.1)
    assert page.count("<article") == 2
    console = Console(width=140, record=True, color_system=None, file=io.StringIO())
    console.print(beside_text(pair))
    first = console.export_text().splitlines()[0]
    assert first.count("Predicted") == 2


def test_a_narrow_terminal_has_them_below_each_other() -> None:
    shown = plain(beside_text([explain(REVIEW, SMALL), explain(REVIEW, LARGE)]))
    assert shown.splitlines()[0].count("Predicted") == 1
    assert shown.count("Predicted") == 2


def test_different_quantities_have_no_common_scale() -> None:
    with pytest.raises(InputError, match="probability and logit have no common scale"):
        raison.show([explain(REVIEW), explain(REVIEW, of="logit")])
    for wrong, said in (([], "nothing to show"), ([explain(REVIEW), 3], r"results\[1\] is 3"), ("x", r"results\[0\]")):
        with pytest.raises(InputError, match=said):
            raison.show(wrong)


def test_two_models_are_not_two_targets_of_one(capsys: pytest.CaptureFixture[str]) -> None:
    raison.show([explain(REVIEW), replace(explain(REVIEW, target="negative"), model="another")])
    assert "2 targets" not in capsys.readouterr().out
    numbers = [
        replace(explain(REVIEW), outputs="number", classes=(name,), probabilities=(), target=name) for name in "ab"
    ]
    raison.show(numbers)
    assert "2 targets" not in capsys.readouterr().out
    raison.show([explain(REVIEW), explain(REVIEW, target="negative")])
    assert "2 targets" in capsys.readouterr().out


def test_signed_and_unsigned_scores_have_scales_of_their_own() -> None:
    small, large = explain(REVIEW, SMALL), replace(explain(REVIEW, tuple(map(abs, LARGE))), signed=False)
    assert "signed and unsigned scores have no common scale, so each map has its own" in " ".join(
        plain(beside_text([small, large])).split()
    )
    widths = [float(width) for width in re.findall(r"width:([\d.]+)%", beside([small, large]))]
    assert max(widths[: len(widths) // 2]) == 50


@pytest.mark.parametrize("encoding", ["cp1252", "latin-1", "ascii"])
def test_a_terminal_of_another_encoding_shows_what_it_can(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out, encoding=encoding))
    raison.show(replace(explain(REVIEW), classes=("سلبي", "positive ↑")))
    sys.stdout.flush()
    assert out.getvalue().decode(encoding).count("Predicted") == 1


def test_a_notebook_gets_html(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    shown: list[str] = []
    output = SimpleNamespace(HTML=lambda markup: markup, display=shown.append)
    shell = SimpleNamespace(config={"IPKernelApp": {}})
    ipython = SimpleNamespace(get_ipython=lambda: shell, display=output)
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", output)
    explain(REVIEW).show()
    raison.show([explain(REVIEW), explain(REVIEW)])
    assert [markup.count("<article") for markup in shown] == [1, 2]
    assert capsys.readouterr().out == ""
    shell.config.clear()
    explain(REVIEW).show()
    assert "Predicted" in capsys.readouterr().out


def test_names_of_units_are_shown_everywhere() -> None:
    units = (Unit(0, 6, "A film", 0, "title"), Unit(7, 18, "It is good.", 0, "body"))
    e = replace(explain("A film It is good."), unit="part", units=units, scores=(0.1, 0.2), notes={"extended": [1]})
    for shown in (plain(beside_text([e])), e.to_html()):
        assert "title: A film" in shown
        assert "to whole tokens, which the given spans cut: body" in shown
    assert list(e.to_frame()["name"]) == ["title", "body"]
    assert "name" not in explain(REVIEW).to_frame()
    again = raison.Explanation.from_json(e.to_json())
    assert again == e
    assert "name" not in explain(REVIEW).to_json()
    assert "'body' +0.200" in repr(e)
