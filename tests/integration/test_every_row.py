"""Every row of explained files is in the explanations or among the rejected, and options are used or refused."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

import raison
from raison.cli import app
from raison.core.errors import DataError, InputError
from raison.data.streams import Reading
from raison.report.pages.explained_files import sections
from raison.report.tables.records import Text
from raison.runs.files.summary import of as summary_of
from tests.serving import words


def test_every_row_of_a_file_is_explained_or_rejected(tmp_path: Path) -> None:
    """Also rows in which no label reaches the threshold; each text's prediction counts once."""

    def classify(texts: list[str]) -> list[list[float]]:
        return [[0.9 if "good" in text else 0.1, 0.8 if "film" in text else 0.2] for text in texts]

    model = raison.load(classify, classes=["joy", "art"], multi_label=True)
    (tmp_path / "rows.txt").write_text("a good film\na film\nnothing\ngood\n")
    for out, method in (("together", "occlusion"), ("again", "random")):
        written = raison.explain_file(
            model, tmp_path / "rows.txt", tmp_path / out, method, target="each", format="jsonl", progress=False
        )
        assert [(row["row"], row["target"]) for row in written.rows()] == [
            (0, "joy"),
            (0, "art"),
            (1, "art"),
            (3, "joy"),
        ]
        assert [(one.row, one.reason) for one in written.rejected] == [
            (2, "no prediction in the text reaches the threshold")
        ]
        summary = summary_of(written)
        assert summary.predictions == {"joy": 2, "art": 1}
        assert summary.targets == {"art": 2, "joy": 2}
        assert summary.rejected == 1


@pytest.mark.parametrize(
    ("labels", "wrong"),
    [
        (["long", "short", "long", ""], [1]),
        (["LONG", "Short", "Long", "long"], [1]),
        (["0", "1", "0", "0"], [1]),
        (["1", "2", "1", ""], [1]),
    ],
)
def test_the_errors_of_explained_files_are_those_of_the_classes(
    labels: list[str], wrong: list[int], tmp_path: Path
) -> None:
    def by_length(texts: list[str]) -> list[list[float]]:
        return [[0.9, 0.1] if len(text) > 3 else [0.1, 0.9] for text in texts]

    rows = tmp_path / "rows.csv"
    rows.write_text("text,label\n" + "".join(f"a film {n},{label}\n" for n, label in enumerate(labels)))
    model = raison.load(by_length, classes=["long", "short"])
    written = raison.explain_file(model, rows, tmp_path / "out", "random", format="jsonl", progress=False)
    assert [row["row"] for row in written.errors()] == wrong
    counts = summary_of(written)
    known = sum(bool(label) for label in labels)
    assert (counts.labelled, counts.right) == (known, known - len(wrong))
    told = sections(written).sections[0].parts[0]
    assert isinstance(told, Text)
    assert f"{known - len(wrong)} of {known} labelled texts are predicted as labelled: " in str(told)
    rows.write_text("text,label\n" + "".join(f"a film {n},wide\n" for n in range(3)))
    other = raison.explain_file(model, rows, tmp_path / "other", "random", format="jsonl", progress=False)
    with pytest.raises(InputError, match="'wide' is none of long, short"):
        list(other.errors())
    assert summary_of(other).labelled == 0


def test_no_column_of_labels_judges_several_labels(tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("text,label\na film,long\na plot,short\n")
    model = raison.load(lambda texts: [[0.9, 0.1] for _ in texts], classes=["long", "short"], multi_label=True)
    written = raison.explain_file(model, rows, tmp_path / "out", "random", format="jsonl", progress=False)
    with pytest.raises(InputError, match="explains a model of several labels: a column of labels judges none"):
        list(written.errors())


def test_the_row_of_most_work_took_longest(tmp_path: Path) -> None:
    """A batch has one time, of which each row has its share of the passes and units."""
    rows = tmp_path / "rows.csv"
    texts = ["a film"] * 10 + ["a film " * 20] + ["a film"] * 10
    rows.write_text("text\n" + "".join(f"{text}\n" for text in texts))
    model = raison.load(lambda texts: [[0.9, 0.1] for _ in texts], classes=["long", "short"])
    written = raison.explain_file(model, rows, tmp_path / "out", "occlusion", format="jsonl", progress=False)
    assert summary_of(written).slowest[0].row == 10


def test_finished_work_explains_no_row_again(tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("text\nzebra film\nzebra plot\n")
    asked: list[str] = []

    def counted(texts: list[str]) -> list[list[float]]:
        asked.extend(texts)
        return [[0.9, 0.1] for _ in texts]

    model = raison.load(counted, classes=["long", "short"])
    for _ in range(2):
        asked.clear()
        raison.explain_file(model, rows, tmp_path / "out", "occlusion", format="jsonl", progress=False)
    # Only whether it is the same function.
    assert not any("zebra" in text for text in asked)


def test_every_link_of_the_report_leads_somewhere(tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("text\na film\na plot\n")
    model = raison.load(lambda texts: [[0.9, 0.1] for _ in texts], classes=["long", "short"])
    raison.explain_file(model, rows, tmp_path / "out", "occlusion", format="jsonl", progress=False)
    assert CliRunner().invoke(app, ["report", str(tmp_path / "out"), "--out", str(tmp_path / "report")]).exit_code == 0
    page = (tmp_path / "report" / "index.html").read_text(encoding="utf-8")
    assert {*re.findall(r'href="#([^"]+)"', page)} <= {*re.findall(r'id="([^"]+)"', page)}


def test_a_label_that_is_no_class_takes_no_other_with_it(tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("text,label\na film,1\na film,0\na film,n/a\n")
    model = raison.load(lambda texts: [[0.9, 0.1] for _ in texts], classes=["long", "short"])
    written = raison.explain_file(model, rows, tmp_path / "out", "random", format="jsonl", progress=False)
    assert [row["row"] for row in written.errors()] == [0]
    assert (summary_of(written).labelled, summary_of(written).right) == (2, 1)
    with pytest.raises(InputError, match="row 4: the label 'n/a' is none of long, short"):
        raison.data.load(rows).class_indices(("long", "short"))


def test_a_file_in_which_no_row_can_be_read_says_why(tmp_path: Path) -> None:
    (tmp_path / "rows.tsv").write_bytes("text\tlabel\ncaf\u00e9\tgood\n\u00e9t\u00e9\tbad\n".encode("latin-1"))
    with pytest.raises(DataError, match=r"no row has an explainable text\. Line 2: the byte 0xe9 is not utf-8"):
        raison.explain_file(words(), tmp_path / "rows.tsv", tmp_path / "out", "random", progress=False)


def test_an_output_folder_below_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "rows.txt").write_text("a good film\n")
    told = r"rows.txt is a file. Choose another folder for --out"
    with pytest.raises(DataError, match=told):
        raison.explain_file(words(), tmp_path / "rows.txt", tmp_path / "rows.txt" / "out", "random", progress=False)
    with pytest.raises(DataError, match=told):
        raison.compare(words(), ["a good film"] * 2, ["random"], ["gini"], out=tmp_path / "rows.txt" / "out")
    with pytest.raises(DataError, match="cannot be used as the output folder"):
        raison.compare(words(), ["a good film"] * 2, ["random"], ["gini"], out=tmp_path / ("a" * 300))


@pytest.mark.parametrize(
    "reading",
    [
        {"text_column": "nosuch"},
        {"label_column": "nosuch"},
        {"id_column": "nosuch"},
        {"contrast_column": "nosuch"},
        {"text_column": "text", "pair_column": "nosuch"},
        {"delimiter": ";"},
        {"encoding": "latin-1"},
    ],
    ids=lambda one: list(one)[-1],
)
def test_named_data_has_known_columns(tmp_path: Path, reading: dict[str, str]) -> None:
    with pytest.raises(DataError, match="is a named data set with known columns"):
        raison.explain_file(words(), "sst2:dev", tmp_path / "out", "random", reading=Reading(**reading), progress=False)  # type: ignore[arg-type]
    assert not (tmp_path / "out").exists()
