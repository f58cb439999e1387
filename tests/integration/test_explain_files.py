"""Whole files: every row once, whatever interrupts the work; rows that fail stay apart; folders that others read."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

import raison
from raison.cli import app
from raison.core.errors import DataError, InputError, RaisonError, UnknownNameError
from raison.core.model import LanguageModel
from raison.data.streams import Reading
from raison.explaining.files import preparation
from raison.explaining.files import survey as surveys
from raison.explaining.generation import Writing
from raison.jobs import disk
from raison.jobs.engine import Shard, Sharing
from raison.runs.files import summary
from raison.runs.files.flat_records import COLUMNS, explanation_of
from raison.runs.files.folder import WrittenShards, read
from raison.runs.files.shards import Format
from raison.studies.reports import write as report
from tests.folder_content import content
from tests.interruptions import Cut, Interruption
from tests.tiny import TINY

WORDS = "the film is a dull and quiet pleasure but not good for its loud end".split()
TEXTS = tuple(" ".join(WORDS[i % 5 : i % 5 + 3 + i % 9]) for i in range(22))
LONG = "word " * 200


@pytest.fixture(autouse=True)
def few_rows_in_a_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several parts and shards of few rows."""
    monkeypatch.setattr(surveys, "ROWS", 4)
    monkeypatch.setattr(surveys, "SHARDS", 3)


@pytest.fixture(scope="module")
def model() -> LanguageModel:
    return loading()


def loading() -> LanguageModel:
    return raison.load(*TINY["bert"]())


def of_letters(texts: list[str]) -> list[list[float]]:
    """Probabilities by the number of letters."""
    return [[1 - len(text) / 1000, len(text) / 1000] for text in texts]


@pytest.fixture
def reviews(tmp_path: Path) -> Path:
    """Twenty-two texts, and two rows that nobody can explain: blank, and longer than the model reads."""
    rows = [f"r{i},{text},no" for i, text in enumerate(TEXTS)]
    rows[5:5] = ["blank,,no"]
    rows[11:11] = [f"long,{LONG},no"]
    path = tmp_path / "reviews.csv"
    path.write_text("\n".join(["id,text,label", *rows]) + "\n")
    return path


def explained(
    model: LanguageModel, data: Path, out: Path, form: Format = "parquet", sharing: Sharing | None = None
) -> WrittenShards:
    asked = sharing or Sharing()
    return raison.explain_file(
        model, data, out, "occlusion", format=form, progress=False, sharing=asked, load=loading if sharing else None
    )


def test_every_row_is_there_once_and_reads_without_raison(model: LanguageModel, reviews: Path, tmp_path: Path) -> None:
    written = explained(model, reviews, tmp_path / "out")
    frame = pd.read_parquet(tmp_path / "out" / "explanations")
    assert tuple(frame.columns) == tuple(column.name for column in COLUMNS)
    assert list(frame.id) == [f"r{i}" for i in range(22)]
    assert list(frame.text) == list(TEXTS)
    assert set(frame.label) == {"no"}
    assert list(frame.line) == [line for line in range(2, 26) if line not in (7, 13)]
    for _, row in frame.iterrows():
        spans = [row.text[unit["start"] : unit["end"]] for unit in row.units]
        assert spans == [unit["text"] for unit in row.units] == row.text.split()
    for row, text in zip(written.rows(), TEXTS, strict=True):
        alone, found = raison.explain(model, text, "occlusion"), explanation_of(row)
        assert found.scores == pytest.approx(alone.scores, abs=1e-6)
        assert (found.units, found.target, found.evaluations) == (alone.units, alone.target, alone.evaluations)
        assert (found.config, found.notes, found.classes) == (alone.config, alone.notes, alone.classes)


def test_rows_that_cannot_be_explained_are_kept_apart(model: LanguageModel, reviews: Path, tmp_path: Path) -> None:
    written = explained(model, reviews, tmp_path / "out")
    lines = [json.loads(line) for line in (tmp_path / "out" / "rejected.jsonl").read_text().splitlines()]
    assert [(one["id"], one["row"], one["line"]) for one in lines] == [("blank", 5, 7), ("long", 11, 13)]
    assert lines[0]["reason"] == "the text is blank"
    assert "the model reads at most 128" in lines[1]["reason"]
    assert (written.done, written.manifest.rows) == (24, 24)


def test_a_text_that_fails_in_its_batch_keeps_no_other_from_its_explanation(tmp_path: Path) -> None:
    def odd(texts: list[str]) -> list[list[float]]:
        return [[float("nan")] * 2 if "dull" in text else [0.25, 0.75] for text in texts]

    path = tmp_path / "texts.txt"
    path.write_text("good film\na dull end\nquiet film\n")
    written = explained(raison.load(odd, classes=["no", "yes"]), path, tmp_path / "out")
    assert [row["text"] for row in written.rows()] == ["good film", "quiet film"]
    assert [one.id for one in written.rejected] == ["texts.txt:2"]


@pytest.mark.parametrize("form", ["parquet", "jsonl"])
def test_killed_at_any_write_and_gone_on_with(
    reviews: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: Format
) -> None:
    model = raison.load(of_letters, classes=["no", "yes"])
    counter = Interruption(0)
    with monkeypatch.context() as patched:
        patched.setattr(disk, "os", counter.as_os())
        explained(model, reviews, tmp_path / "whole", form)
    expected = content(tmp_path / "whole")
    # At some of the writes, spread over all of the work; at each with RAISON_ALL_FAMILIES.
    step = 1 if os.environ.get("RAISON_ALL_FAMILIES") else {"jsonl": 7, "parquet": 15}[form]
    for moment in range(1, counter.seen + 1, step):
        out = tmp_path / f"cut-{moment}"
        with monkeypatch.context() as patched:
            patched.setattr(disk, "os", Interruption(moment).as_os())
            with pytest.raises(Cut):
                explained(model, reviews, out, form)
        explained(model, reviews, out, form)
        assert content(out) == expected, moment


def timeless(written: WrittenShards) -> list[dict[str, object]]:
    return [{name: value for name, value in row.items() if name != "seconds"} for row in written.rows()]


def test_shards_and_workers_give_the_same_rows(model: LanguageModel, reviews: Path, tmp_path: Path) -> None:
    whole = explained(model, reviews, tmp_path / "whole")
    first = explained(model, reviews, tmp_path / "shared", sharing=Sharing(Shard(1, 2)))
    assert 0 < first.done < 24
    assert not (tmp_path / "shared" / "summary.json").exists()
    second = explained(model, reviews, tmp_path / "shared", sharing=Sharing(Shard(2, 2)))
    assert second.is_complete
    assert content(tmp_path / "shared") == content(tmp_path / "whole")
    assert timeless(second) == timeless(whole)


def test_an_interruption_of_a_dear_method_loses_few_rows(
    model: LanguageModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(surveys, "ROWS", 64)
    (tmp_path / "many.txt").write_text("so good\n" * 60)

    def stopping(done: int) -> None:
        raise KeyboardInterrupt

    asked = model, tmp_path / "many.txt", tmp_path / "out", "kernel_shap(samples=100)"
    with pytest.raises(KeyboardInterrupt):
        raison.explain_file(*asked, progress=stopping)
    kept = [line for path in (tmp_path / "out").rglob("*.jsonl") for line in path.read_text().splitlines()]
    (part,) = (json.loads(line) for line in kept)
    assert len(part["rows"]) == 25
    assert raison.explain_file(*asked, progress=False).is_complete


def test_so_many_rows(model: LanguageModel, reviews: Path, tmp_path: Path) -> None:
    def limited(limit: int) -> WrittenShards:
        reading = Reading(limit=limit)
        return raison.explain_file(model, reviews, tmp_path / "out", "occlusion", reading=reading, progress=False)

    assert [row["id"] for row in limited(7).rows()] == [f"r{i}" for i in range(6)]
    with pytest.raises(
        DataError, match=r"it differs in data, settings.* Different settings: limit \(7 there, 8 here\)"
    ):
        limited(8)


def test_so_many_hours(model: LanguageModel, reviews: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def for_hours(hours: float | None) -> WrittenShards:
        return raison.explain_file(model, reviews, tmp_path / "out", "occlusion", budget_hours=hours, progress=False)

    assert for_hours(1e-9).done == 0
    whole = for_hours(None)
    assert whole.is_complete
    assert for_hours(1e-9).done == 24
    with pytest.raises(InputError, match="above 0"):
        for_hours(0)


def as_lines(path: Path) -> None:
    path.with_suffix(".jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS[:3]))


def as_table(path: Path) -> None:
    pd.DataFrame({"idx": [7, 8, 9], "text": TEXTS[:3]}).to_parquet(path.with_suffix(".parquet"))


def as_tabs(path: Path) -> None:
    path.with_suffix(".tsv").write_text("text\tother\n" + "".join(f"{text}\tx\n" for text in TEXTS[:3]))


@pytest.mark.parametrize(
    ("write", "ids"),
    [
        (as_lines, ["a.jsonl:1", "a.jsonl:2", "a.jsonl:3"]),
        (as_table, ["7", "8", "9"]),
        (as_tabs, ["a.tsv:2", "a.tsv:3", "a.tsv:4"]),
    ],
    ids=["jsonl", "parquet", "tsv"],
)
def test_formats(model: LanguageModel, tmp_path: Path, write: Callable[[Path], None], ids: list[str]) -> None:
    write(tmp_path / "a.x")
    written = raison.explain_file(model, tmp_path / "a.*", tmp_path / "out", "occlusion", progress=False)
    assert [row["id"] for row in written.rows()] == ids
    assert [row["text"] for row in written.rows()] == list(TEXTS[:3])


def test_patterns_name_files_in_order_and_pairs_have_two_texts(model: LanguageModel, tmp_path: Path) -> None:
    for name in ("b", "a"):
        (tmp_path / f"{name}.csv").write_text(f"premise,hypothesis,name\ngood film {name},dull end,{name}1\n")
    reading = Reading(id_column="name")
    out = tmp_path / "out"
    written = raison.explain_file(model, tmp_path / "*.csv", out, "occlusion", reading=reading, progress=False)
    rows = list(written.rows())
    assert [(row["id"], row["text"], row["second"]) for row in rows] == [
        ("a1", "good film a", "dull end"),
        ("b1", "good film b", "dull end"),
    ]
    assert explanation_of(rows[0]).text == ("good film a", "dull end")
    with pytest.raises(DataError, match=r"no file matches the pattern .*\*\.tsv"):
        raison.explain_file(model, tmp_path / "*.tsv", tmp_path / "other", progress=False)


def test_several_labels_of_a_row_are_rows_of_their_own(tmp_path: Path, reviews: Path) -> None:
    several = raison.load(lambda texts: [[0.9, 0.6, 0.1]] * len(texts), classes=["a", "b", "c"], multi_label=True)
    written = raison.explain_file(several, reviews, tmp_path / "out", "occlusion", target="each", progress=False)
    rows = list(written.rows())
    assert [(row["row"], row["number"], row["target"]) for row in rows[:4]] == [
        (0, 0, "a"), (0, 1, "b"), (1, 0, "a"), (1, 1, "b"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"target": "no such"}, "no such"),
        ({"method": "occlusio"}, "Did you mean 'occlusion'"),
        ({"target": [1, 2]}, "applies to all rows"),
        ({"format": "csv"}, "parquet, jsonl"),
        ({"writing": Writing(earlier=True)}, "earlier applies"),
        ({"reading": Reading(text_column="words")}, "unknown column 'words'"),
    ],
    ids=lambda one: next(iter(one)) if isinstance(one, dict) else "",
)
def test_mistakes_are_found_before_anything_is_written(
    model: LanguageModel, reviews: Path, tmp_path: Path, options: dict[str, object], match: str
) -> None:
    with pytest.raises((InputError, UnknownNameError, DataError), match=match):
        raison.explain_file(model, reviews, tmp_path / "out", **options, progress=False)
    assert not (tmp_path / "out").exists()


def test_a_changed_shard_is_not_read(model: LanguageModel, reviews: Path, tmp_path: Path) -> None:
    explained(model, reviews, tmp_path / "out", "jsonl")
    path = tmp_path / "out" / "explanations" / "00001.jsonl"
    path.write_text(path.read_text().replace("0.", "1.", 1))
    (tmp_path / "out" / "summary.json").unlink()
    with pytest.raises(DataError, match="its digest does not match"):
        report(tmp_path / "out", draw=False)


def test_data_that_change_meanwhile_are_noticed(
    model: LanguageModel, reviews: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def surveyed(*given: object) -> surveys.Survey:
        found = surveys.survey(*given)  # type: ignore[arg-type]
        reviews.write_text(reviews.read_text().replace("quiet", "noisy"))
        return found

    monkeypatch.setattr(preparation, "survey", surveyed)
    with pytest.raises(DataError, match="changed while they were read"):
        explained(model, reviews, tmp_path / "out")


def test_what_a_folder_comes_to(model: LanguageModel, reviews: Path, tmp_path: Path) -> None:
    written = explained(model, reviews, tmp_path / "out")
    found, rows = summary.of(written), list(written.rows())
    assert found == summary.of(read(tmp_path / "out"))
    assert sum(found.predictions.values()) == len(rows) == found.explanations == 22
    assert found.evaluations == sum(row["evaluations"] for row in rows)
    for word in found.words:
        scores = [
            score
            for row in rows
            for unit, score in zip(row["units"], row["scores"], strict=True)
            if row["target"] == word.target and unit["text"] == word.text
        ]
        assert (word.count, word.total) == (len(scores), pytest.approx(sum(scores)))
    assert len(found.slowest) == summary.SLOWEST
    assert found.slowest[0].seconds == max(row["seconds"] for row in rows)


def test_words_beyond_those_that_are_counted(
    model: LanguageModel, reviews: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exact = summary.of(explained(model, reviews, tmp_path / "out"))
    monkeypatch.setattr(summary, "KNOWN", 12)
    (tmp_path / "out" / "summary.json").unlink()
    found = summary.of(read(tmp_path / "out"))
    assert (exact.is_exact, found.is_exact) == (True, False)
    assert found.words[0].text == exact.words[0].text


def test_the_report_of_a_folder_whole_or_not(model: LanguageModel, reviews: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    explained(model, reviews, out, sharing=Sharing(Shard(1, 2)))
    assert "So far" in report(out, tmp_path / "page", draw=False).read_text()
    explained(model, reviews, out)
    page = report(out, tmp_path / "page", draw=False).read_text()
    assert "So far" not in page
    for said in ("22 explanations of 22 rows by occlusion", "blank (row 5)", "the text is blank", "r0 (row 0)"):
        assert said in page
    assert "| prediction |" in (tmp_path / "page" / "tables.md").read_text()


def test_a_shard_that_is_made_again_is_counted_again(model: LanguageModel, reviews: Path, tmp_path: Path) -> None:
    whole = summary.of(explained(model, reviews, tmp_path / "out"))
    told = tmp_path / "out" / "summary.json"
    receipts = sorted((tmp_path / "out" / "receipts").iterdir())
    receipts[-1].unlink()
    cut = read(tmp_path / "out")
    assert summary.of(cut).rows == cut.done < whole.rows
    told.write_text(told.read_text().replace('"rejected": 2', '"rejected": 1'))
    again = summary.of(explained(model, reviews, tmp_path / "out"))
    assert (again.rows, again.rejected) == (whole.rows, whole.rejected) == (24, 2)


def run(*words: object) -> tuple[int, str, RaisonError | None]:
    result = CliRunner().invoke(app, list(map(str, words)))
    error = result.exception if isinstance(result.exception, RaisonError) else None
    return result.exit_code, result.stdout, error


def test_the_command(model: LanguageModel, reviews: Path, tmp_path: Path) -> None:
    state, tokenizer = TINY["bert"]()
    state.save_pretrained(tmp_path / "tiny")
    tokenizer.save_pretrained(tmp_path / "tiny")
    more = tmp_path / "more.txt"
    more.write_text("good film\n")
    asked = ("--model", tmp_path / "tiny", "--method", "occlusion", "--out", tmp_path / "out")
    code, said, _ = run("explain", "--data", reviews, more, *asked, "--json")
    assert code == 0
    assert (json.loads(said)["explanations"], json.loads(said)["complete"]) == (23, True)
    assert len(pd.read_parquet(tmp_path / "out" / "explanations")) == 23
    code, said, _ = run("explain", "--data", reviews, more, *asked)
    assert (code, "prediction" in said, "raison report" in said) == (0, True, True)


@pytest.mark.parametrize(
    ("words", "match"),
    [
        (("fine", "--limit", "3"), "--limit is for files"),
        (("fine", "--out", "there"), "--out is for files"),
        (("--data", "a.csv", "--pair", "x", "--out", "there"), "--pair is for one text"),
        (("--data", "a.csv", "--html", "x.html", "--out", "there"), "--html is for one text"),
        (("--data", "a.csv"), "give --out"),
        (("so good", "--data", "a.csv", "--out", "there"), "'so good' is a text, and --data explains"),
        (("fine", "--html", "x.json"), "'x.json' is no name for one: end it in .html"),
        ((), "no text given"),
        (("one", "two"), "there are 2 texts"),
    ],
)
def test_options_that_do_not_go_together(words: tuple[str, ...], match: str) -> None:
    code, _, error = run("explain", *words)
    assert code != 0
    assert match in str(error)


def test_the_documentation_has_every_column() -> None:
    page = (Path(__file__).parents[2] / "docs" / "scale.md").read_text()
    for column in COLUMNS:
        assert f"| `{column.name}` | `{column.type}` | {column.about} |" in page
