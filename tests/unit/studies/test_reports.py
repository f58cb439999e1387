"""The report of a study, made from synthetic records: whole, true to the records, safe, without torch."""

import json
import re
import subprocess
import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import pytest
from typer.testing import CliRunner

from raison.cli import app
from raison.core.errors import DataError
from raison.numerics.statistics.bootstrap import mean_interval
from raison.report.figures import canvas
from raison.report.figures.plots import drawn
from raison.report.tables.results import columns, markdown
from raison.runs.record import Record
from raison.runs.run import Run, head_of, read_run
from raison.runs.summary import Costs
from raison.runs.table import comparison
from raison.studies.folder import text_digest
from raison.studies.kinds.comparison.curves import curves
from raison.studies.reports import REPORT, write
from tests.study_folder import CHOOSERS, METRICS, STUDY, TEXTS, Made, make, make_run

MODELS = ("small", "decoder")
"""Of the study of the report that most tests read: one run with claims of its own, and another."""
VOID = {"meta", "input", "wbr"}


class Page(HTMLParser):
    """Fails on tags that do not close in order; collects elements, ids, and the text."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(markup)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] not in ("script", "style"):
            self.text += data

    def all(self, name: str) -> list[str]:
        return [str(attributes[name]) for _, attributes in self.elements if attributes.get(name) is not None]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(make(tmp_path_factory.mktemp("report") / "study", Made(models=MODELS))).parent


@cache
def read(path: Path) -> Page:
    return Page(path.read_text(encoding="utf-8"))


def test_every_page_is_well_formed_and_every_link_leads_somewhere(report: Path) -> None:
    pages = sorted(report.rglob("*.html"))
    assert len(pages) == 1 + len(MODELS) * (1 + len(TEXTS))
    for path in pages:
        ids = read(path).all("id")
        assert len(set(ids)) == len(ids)
        for link in read(path).all("href"):
            target, _, anchor = link.partition("#")
            where = path if not target else (path.parent / target).resolve()
            assert where.exists(), f"{path} links to {link}"
            if anchor:
                assert anchor in read(where).all("id")


def test_no_page_asks_for_anything_from_the_network(report: Path) -> None:
    for path in report.rglob("*.html"):
        markup = path.read_text(encoding="utf-8")
        assert "default-src 'none'" in markup
        assert not re.search(r"https?:|@import|url\([^#]|<link|<iframe|\bsrc=|fetch\(", markup)


def test_texts_and_study_file_are_escaped(report: Path) -> None:
    for path in report.rglob("*.html"):
        page = read(path)
        assert not {"b", "one"} & {tag for tag, _ in page.elements if path == report / "index.html"}
        assert sum(tag == "script" for tag, _ in page.elements) == (path.parent != report)
    assert TEXTS[4] in read(report / "texts" / "small--reviews" / "0005.html").text
    assert "lime finds what <b>matters</b> better than random" in read(report / "index.html").text
    assert STUDY in read(report / "index.html").text


def test_numbers_are_those_of_the_comparison(report: Path) -> None:
    page, tables = read(report / "index.html").text, (report / "tables.md").read_text(encoding="utf-8")
    latex = (report / "tables.tex").read_text(encoding="utf-8")
    assert latex.count(r"\begin{table}") == len(MODELS)
    for name in MODELS:
        results = comparison(read_run(report.parent / f"{name}--reviews"))
        assert markdown(results).splitlines()[0] in tables
        for column in columns(results):
            for cell in column.cells:
                assert cell.mean.replace("-", "\N{MINUS SIGN}") in page
                assert f"{cell.interval}" in tables
                assert cell.mean.replace("-", "$-$") in latex


def test_page_says_what_was_run(report: Path) -> None:
    page = read(report / "index.html").text
    for wanted in ("Three models & <one> data set", "invented", "nobody2026nothing", "mini", text_digest(STUDY), "9.9"):
        assert wanted in page
    for part in (
        "Compared with the best",
        "Selected by one metric",
        "How similar",
        "Against cost",
        "Across models",
        "Claims",
    ):
        assert part in page
    assert "Before you read the numbers" not in page
    assert "mean over the seeds" not in page
    assert "means over the seeds 0, 1" in page
    for tables in ("tables.md", "tables.tex"):
        assert text_digest(STUDY) in (report / tables).read_text(encoding="utf-8")


def test_claims_are_judged(report: Path) -> None:
    found = re.findall(
        r'<span class="(holds|fails|undecided|missing|too-few|not-judged)"[^>]*>',
        (report / "index.html").read_text(encoding="utf-8"),
    )
    assert found == ["holds", "holds", "fails"] * 2, "by claim and run, then each with its numbers"


def test_a_metric_without_direction_has_no_marks_and_no_plot(report: Path) -> None:
    markup = (report / "index.html").read_text(encoding="utf-8")
    plotted = re.findall(r'aria-label="(\S+) . against passes per text"', markup)
    assert plotted == [
        metric["label"].replace("'", "&#x27;") for metric in METRICS if metric["label"] != "entropy"
    ] * len(MODELS)
    [entropy] = [c for c in columns(comparison(read_run(report.parent / "small--reviews"))) if c.name == "entropy"]
    assert entropy.arrow == ""
    assert {cell.rank for cell in entropy.cells} == {0}


def test_a_judge_that_chose_is_marked(report: Path) -> None:
    results = comparison(read_run(report.parent / "small--reviews"))
    own = {
        (row.method, c.name)
        for c in columns(results)
        for row, cell in zip(results.rows, c.cells, strict=True)
        if cell.own
    }
    assert own == {(f"{method} by {by}", by) for by in CHOOSERS for method in ("lime", "random(draws=24)")}
    assert "†" in markdown(results)


def test_page_of_a_text_has_every_row_with_its_scores(report: Path) -> None:
    folder = report.parent / "small--reviews"
    run = read_run(folder)
    page = read(report / "texts" / "small--reviews" / "0002.html").text
    for row in run.header.rows:
        record = run.records[row.label, row.seeds[0], 1]
        assert page.count(row.label) >= 2
        assert f"{record.scores[0]:z.3f}".replace("-", "\N{MINUS SIGN}") in page
        ratio = record.scores[3][0] / record.scores[3][1]
        assert f"{ratio:.3f}" in page


def test_records_only(tmp_path: Path) -> None:
    folder = make(tmp_path / "study", Made(models=("small",), explanations=False))
    report = write(folder, draw=False).parent
    assert not (report / "texts").exists()
    page = read(report / "index.html").text
    assert "pages of single texts need explanations.jsonl" in page
    assert "How similar" not in page
    assert "Against cost" not in page


def test_unfinished_limited_and_broken_runs_say_so(tmp_path: Path) -> None:
    folder = make(tmp_path / "study", Made(models=("small", "wide"), finished=3, limit=8))
    with (folder / "small--reviews" / "records.jsonl").open("a") as file:
        file.write('{"row": "lime", "se')
    (folder / "wide--reviews" / "run.json").unlink()
    page = write(folder, draw=False)
    for text in (read(page).text, (page.parent / "tables.md").read_text().replace("\\", "")):
        assert "--limit 8" in text
        assert "small--reviews: unfinished: 3 of 8 texts" in text
        assert "1 broken line" in text
        assert "wide--reviews: this run has not begun" in text
    assert len(list((page.parent / "texts" / "small--reviews").glob("0*.html"))) == 3


def test_a_run_without_any_finished_text(tmp_path: Path) -> None:
    folder = make(tmp_path / "study", Made(models=("small",), finished=0))
    page = write(folder)
    assert "No text is finished yet" in read(page).text
    assert "No text is finished yet" in (page.parent / "tables.md").read_text()


def test_a_single_comparison_reads_as_a_study_of_one_run(tmp_path: Path) -> None:
    make_run(tmp_path / "alone", "demo/sst2", Made(texts=2, finished=2))
    page = write(tmp_path / "alone", tmp_path / "elsewhere", draw=False)
    assert page == tmp_path / "elsewhere" / "index.html"
    assert "demo/sst2 on reviews" in read(page).text
    assert not (tmp_path / "alone" / "report").exists()


def test_a_folder_that_holds_neither(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="contains no study"):
        write(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_without_matplotlib_the_way_out_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_run(tmp_path / "alone", "demo/sst2", Made(texts=2, finished=2))
    monkeypatch.setattr(canvas, "find_spec", lambda name: None)
    with pytest.raises(DataError, match=r"raison\[report\].*--no-plots"):
        write(tmp_path / "alone")
    assert not (tmp_path / "alone" / "report").exists()


def test_the_same_records_make_the_same_report(tmp_path: Path) -> None:
    make_run(tmp_path / "alone", "demo/sst2", Made(texts=2, finished=2))
    first, again = (write(tmp_path / "alone", tmp_path / name).parent for name in ("first", "again"))
    files = [path.relative_to(first) for path in first.rglob("*") if path.is_file()]
    assert len(files) == 3 + 1 + 2
    for path in files:
        assert (first / path).read_bytes() == (again / path).read_bytes()


def test_plots_leave_the_caller_s_settings_and_figures_alone(tmp_path: Path) -> None:
    make_run(tmp_path / "alone", "demo/sst2", Made(texts=3, finished=3))
    code = f"""
import sys, matplotlib
from pathlib import Path
from raison.studies.reports import REPORT, write
matplotlib.rcParams["font.size"] = 17
names = [name for name in matplotlib.rcParams if name != "backend"]  # to ask for the backend would choose one
before = [matplotlib.rcParams[name] for name in names]
write(Path({str(tmp_path / "alone")!r}))
sys.exit([matplotlib.rcParams[name] for name in names] != before
    or not {{"matplotlib.pyplot", "torch"}}.isdisjoint(sys.modules))
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_command_says_where_the_report_is(tmp_path: Path) -> None:
    make_run(tmp_path / "alone", "demo/sst2", Made(texts=2, finished=2))
    call = ["report", str(tmp_path / "alone"), "--no-plots"]
    shown = CliRunner().invoke(app, call, catch_exceptions=False).stdout
    page = tmp_path / "alone" / "report" / "index.html"
    assert shown.splitlines()[0] == str(page)
    assert "<svg" not in page.read_text(encoding="utf-8")
    found = json.loads(CliRunner().invoke(app, [*call, "--json"], catch_exceptions=False).stdout)
    assert found == {"page": str(page), "tables": [str(page.with_name(name)) for name in ("tables.md", "tables.tex")]}


def test_writing_a_report_never_imports_torch(tmp_path: Path) -> None:
    """Of a study; what it says of one model it says of three."""
    folder = make(tmp_path / "study", Made(models=("small",), texts=3, finished=3))
    code = (
        "import sys; from pathlib import Path; from raison.studies.reports import write;"
        f"write(Path({str(folder)!r}), Path({str(tmp_path / 'report')!r}), False);"
        "sys.exit('torch' in sys.modules or 'matplotlib' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_mean_curves_of_methods() -> None:
    label = "activation_auc(curve=True)"
    rows = [{"label": "lime", "method": "lime", "seeds": [0, 1]}, {"label": "random", "method": "random", "seeds": [0]}]
    said = {"raison": "1", "model": "m", "data": "d", "texts": 2, "rows": rows, "versions": {}}
    said["metrics"] = [{"label": label, "higher_is_better": True, "pool": "curve"}]
    run = Run(head_of(said | {"settings": {"unit": "word", "of": "probability", "seed": 0}}))
    assert list(curves(run, 0)) == []
    for row, seed, base in (("lime", 0, 0.2), ("lime", 1, 0.4), ("random", 0, 0.0)):
        for text in range(2):
            points = tuple(base + 0.1 * text + tenth / 100 for tenth in range(11))
            costs = Costs(1, 0, 0.0)
            run.add_records([Record(row, seed, text, ((0.5, *points),), costs, "yes", "yes", 3)])
    (figure,) = curves(run, 0)
    assert [curve.name for curve in figure.curves] == ["lime", "random"]
    lime = figure.curves[0].spots
    assert [spot.x for spot in lime] == pytest.approx(range(0, 101, 10))
    assert [spot.mean for spot in lime] == pytest.approx([0.35 + tenth / 100 for tenth in range(11)])
    assert (lime[0].mean, lime[0].low, lime[0].high) == pytest.approx(mean_interval([0.3, 0.4]))
    assert label in drawn(figure)


def test_the_report_is_not_written_through_a_link(tmp_path: Path) -> None:
    run, other = make(tmp_path / "run", Made(models=("small",), texts=2, finished=2)), tmp_path / "other"
    other.mkdir()
    (run / REPORT).symlink_to(other)
    with pytest.raises(DataError, match="report is a link that leads out of"):
        write(run)
    assert not list(other.iterdir())
    write(run, run / REPORT, draw=False)
    assert (other / "index.html").is_file()
