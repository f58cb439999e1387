"""Tables of results: marks, escaping, undefined numbers, widths."""

import csv
import io
import math
import re

import pytest
from rich.console import Console

from raison.core.results.scores import Comparison, MetricScores, Scores, Summary
from raison.report.tables.html import results_fragment, results_page
from raison.report.tables.results import caption, columns, csv_text, latex, markdown
from raison.report.tables.terminal import results_plain, table
from raison.report.tables.writers import escape_latex


def summary(mean: float, count: int = 20) -> Summary:
    return Summary(mean, mean - 0.1, mean + 0.1, count)


def scores(method: str, gain: float, loss: float, count: int = 20) -> Scores:
    metrics = (
        MetricScores("comprehensiveness", True, (gain,), summary(gain, count)),
        MetricScores("log_odds", False, (loss,), summary(loss)),
    )
    return Scores(method, metrics, summary(1500.0), summary(0.0), summary(0.25))


def comparison(*rows: Scores) -> Comparison:
    return Comparison(rows, "demo/sst2", "sst2", 20, "word", "probability", 3, {"removal": "mask"})


THREE = comparison(scores("first_one", 0.5, -1.0), scores("second", 0.7, -3.0, 18), scores("random", 0.1, -2.0))


def ranks(results: Comparison) -> dict[str, list[int]]:
    return {column.name: [cell.rank for cell in column.cells] for column in columns(results)}


def test_best_and_second_follow_the_metric_s_direction() -> None:
    assert ranks(THREE)["comprehensiveness"] == [2, 1, 0]
    assert ranks(THREE)["log_odds"] == [0, 1, 2]
    assert ranks(THREE)["evaluations"] == [0, 0, 0]


def test_ties_share_a_rank_and_a_single_value_has_none() -> None:
    tied = comparison(scores("a", 0.5, 1.0), scores("b", 0.5, 1.0), scores("c", 0.2, 1.0), scores("d", 0.1, 1.0))
    assert ranks(tied)["comprehensiveness"] == [1, 1, 2, 0]
    assert ranks(tied)["log_odds"] == [0, 0, 0, 0]
    assert ranks(comparison(scores("a", 0.5, 1.0), scores("b", 0.4, 1.0)))["comprehensiveness"] == [1, 0]


def test_undefined_and_missing_numbers_are_shown_and_never_ranked() -> None:
    broken = Scores("broken", THREE.rows[0].metrics[:1], summary(1.0), summary(0.0), summary(math.nan))
    undefined = scores("undefined", math.nan, -9.0)
    results = comparison(*THREE.rows, broken, undefined)
    assert columns(results)[1].cells[3].mean == "–"
    assert columns(results)[0].cells[4].mean == "n/a"
    assert columns(results)[0].cells[4].interval == ""
    assert ranks(results)["comprehensiveness"] == [2, 1, 0, 2, 0]
    for render in (markdown, latex, csv_text, results_plain, results_page, results_fragment):
        assert "undefined" in render(results)
        assert "nan" not in render(results)


def test_number_of_texts_is_said_once_and_where_it_differs() -> None:
    assert "n = 20" in caption(THREE)
    assert "20 texts" in caption(THREE)
    assert columns(THREE)[0].cells[1].interval == "[0.600, 0.800] n=18"


def test_markdown_has_marks_arrows_and_one_shape() -> None:
    lines = [line for line in markdown(THREE).splitlines() if line.startswith("|")]
    assert len({len(re.findall(r"(?<!\\)\|", line)) for line in lines}) == 1
    assert lines[0].startswith("| method | comprehensiveness ↑ | log\\_odds ↓ |")
    assert "**0.700** [0.600, 0.800]" in lines[3]
    assert "<u>0.500</u>" in lines[2]


def test_markdown_escapes_names() -> None:
    shown = markdown(comparison(scores("a|b_c*d`e<f&g", 0.1, 0.2)))
    assert "a\\|b\\_c\\*d\\`e&lt;f&amp;g" in shown


def test_latex_escapes_names_and_marks_ranks() -> None:
    shown = latex(comparison(scores(r"50%_&#{}~^\$", 0.1, -0.2), scores("b", 0.2, -0.3), scores("c", 0.3, -0.4)))
    assert r"50\%\_\&\#\{\}\textasciitilde{}\textasciicircum{}\textbackslash{}\$" in shown
    assert r"comprehensiveness $\uparrow$ & log\_odds $\downarrow$" in shown
    assert r"\textbf{0.300}" in shown
    assert r"\underline{$-$0.300}" in shown
    assert shown.count(r"\begin{") == shown.count(r"\end{")


def test_latex_prints_marks_as_they_are() -> None:
    """Two hyphens would be a dash, and two quotes a quotation mark."""
    assert escape_latex("a--b---c") == "a-{}-b-{}-{}-c"
    assert escape_latex("``x'' | ?`") == r"`{}`{}x'{}'{} \textbar{} ?`{}"


def test_results_hold_their_names() -> None:
    assert list(THREE) == ["first_one", "second", "random"]
    assert "second" in THREE
    assert "third" not in THREE
    assert list(THREE["second"]) == ["comprehensiveness", "log_odds"]


def test_csv_is_read_back_unrounded() -> None:
    odd = scores('name, with "quotes"', 1 / 3, math.nan)
    rows = list(csv.DictReader(io.StringIO(csv_text(odd))))
    assert [row["metric"] for row in rows] == ["comprehensiveness", "log_odds", "evaluations", "gradients", "seconds"]
    assert rows[0]["method"] == 'name, with "quotes"'
    assert float(rows[0]["mean"]) == 1 / 3
    assert rows[1]["mean"] == ""


@pytest.mark.parametrize("width", [40, 80, 200])
def test_terminal_table_never_cuts_a_number(width: int) -> None:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    with console.capture() as captured:
        console.print(table(THREE))
    shown = captured.get()
    for wanted in (
        "comprehensiveness ↑",
        "log_odds ↓",
        "0.700*",
        "[0.600, 0.800] n=18",
        "[-3.100, -2.900]",
        "1,500",
        "0.250 s",
    ):
        assert wanted in shown
    assert shown.count("first_one") == (1 if width > 100 else shown.count("random"))
    assert "…" not in shown


def test_html_escapes_and_marks() -> None:
    shown = results_page(comparison(scores("<b>", 0.1, -0.2), scores("b", 0.2, -0.3), scores("c", 0.3, -0.4)))
    assert "&lt;b&gt;" in shown
    assert "<strong>0.300</strong>" in shown
    assert "<u>0.200</u>" in shown
    assert "higher is better" in shown
    assert "<script" not in shown
    assert not re.search(r"https?:|@import|url\(|\bsrc=", shown)


def test_costs_that_nobody_has_are_left_out() -> None:
    assert [column.name for column in columns(THREE)] == ["comprehensiveness", "log_odds", "evaluations", "time"]


def test_accepts_scores_a_comparison_or_a_list() -> None:
    row = THREE.rows[0]
    assert columns(row) == columns([row]) == columns(comparison(row))
    assert "demo/sst2" not in caption(row)
