"""Whole files where a model writes, prompts or questions with sources: rows as each alone, whatever stops the work."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

import raison
from raison import Citations
from raison.cli import app
from raison.core.errors import DataError, InputError
from raison.data.streams import Reading
from raison.explaining.files import entry_points
from raison.explaining.files import survey as surveys
from raison.explaining.generation import Writing
from raison.jobs import disk
from raison.jobs.engine import Shard, Sharing
from raison.models.adapters.writing.generator import Generator
from raison.runs.files import summary
from raison.runs.files.flat_records import explanation_of, result_of
from raison.runs.files.folder import WrittenShards, read
from raison.studies.reports import write as report
from tests.copying import copying_writer
from tests.folder_content import content
from tests.interruptions import Cut, Interruption
from tests.tiny import build_language_model
from tests.unit.explaining.test_cite import ANSWER, QUESTION, SOURCES, TEMPLATE

WRITER = copying_writer([*SOURCES.values(), TEMPLATE, QUESTION, ANSWER, "unheard words"])
ANSWERS = (ANSWER, "Brandt founded the port .", "owls hunt .", "sells tea .", "guests like it .", "no sound .", ANSWER)
PROMPTS = ("the film is", "the film is a dull and quiet pleasure", "not good for")
CITED = {"template": TEMPLATE, "draws": 2, "progress": False}
NEVER = {"question": QUESTION, "sources": {"a": " "}}


@pytest.fixture(autouse=True)
def few_rows_in_a_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several parts and shards of few rows."""
    monkeypatch.setattr(entry_points, "WRITTEN", 2)
    monkeypatch.setattr(surveys, "SHARDS", 3)


@pytest.fixture(scope="module")
def generator() -> Generator:
    return Generator(*build_language_model("llama"), "tiny")


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    """Seven questions, and four lines of which nothing can be made."""
    asked = {"question": QUESTION, "sources": SOURCES}
    rows = [{"id": f"q{i}", **asked, "answer": answer} for i, answer in enumerate(ANSWERS)]
    lines = list(map(json.dumps, rows))
    lines[2:2] = ["{", json.dumps({"question": "why"}), json.dumps(NEVER), json.dumps(rows[0] | {"answer": " "})]
    path = tmp_path / "questions.jsonl"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def prompts(tmp_path: Path) -> Path:
    path = tmp_path / "prompts.txt"
    path.write_text("\n".join(PROMPTS) + "\n")
    return path


def cited(data: Path, out: Path, **changes: object) -> WrittenShards:
    return raison.cite_file(WRITER, data, out, **{**CITED, **changes})


def alone(answer: str) -> Citations:
    return raison.cite(WRITER, QUESTION, SOURCES, template=TEMPLATE, draws=2, answer=answer)


def timeless(result: object) -> object:
    return replace(result, seconds=0.0)  # type: ignore[type-var]


def test_a_row_for_each_statement_as_each_question_alone(questions: Path, tmp_path: Path) -> None:
    rows = list(cited(questions, tmp_path / "out").rows())
    firsts = [row for row in rows if row["number"] == 0]
    assert [row["id"] for row in firsts] == [f"q{i}" for i in range(len(ANSWERS))]
    for row, answer in zip(firsts, ANSWERS, strict=True):
        expected = alone(answer)
        own = [one for one in rows if one["row"] == row["row"]]
        assert timeless(result_of(row)) == timeless(expected)
        assert [one["number"] for one in own] == list(range(len(expected.statements)))
        assert [tuple(one["scores"]) for one in own] == list(expected.scores)
        assert [one["target"] for one in own] == [statement.text for statement in expected.statements]
        assert [one["value_full"] for one in own] == [one.log_probability for one in expected.statements]
        assert {one["prediction"] for one in own} == {expected.answer}
        assert sum(one["evaluations"] for one in own) == expected.evaluations
        assert [unit["name"] for unit in row["units"]] == list(SOURCES)
        assert [row["text"][unit["start"] : unit["end"]] for unit in row["units"]] == list(SOURCES.values())
        assert json.loads(own[-1]["notes"])["origin"] == expected.statements[-1].origin
        assert explanation_of(own[-1]).scores == expected.scores[-1]


def test_an_answer_of_the_model_itself(generator: Generator, tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_text(json.dumps({"question": "who told it?", "sources": ["the old sailor told a story."]}) + "\n")
    asked = {"template": "plain", "draws": 0, "max_new_tokens": 3}
    [row] = raison.cite_file(generator, path, tmp_path / "out", progress=False, **asked).rows()
    expected = raison.cite(generator, "who told it?", ["the old sailor told a story."], **asked)
    assert timeless(result_of(row)) == timeless(expected)


def test_log_odds_of_a_method_of_its_own_scale(questions: Path, tmp_path: Path) -> None:
    written = cited(questions, tmp_path / "out", method="context_cite(ablations=4)", draws=0, reading=Reading(limit=1))
    row = next(written.rows())
    share = pytest.approx(row["probabilities"][0])
    assert row["of"] == "log_odds"
    assert 1 / (1 + 2.718281828459045 ** -row["value_full"]) == share


def test_rows_that_cannot_be_cited_are_kept_apart(questions: Path, tmp_path: Path) -> None:
    cited(questions, tmp_path / "out")
    lines = [json.loads(line) for line in (tmp_path / "out" / "rejected.jsonl").read_text().splitlines()]
    assert [one["line"] for one in lines] == [3, 4, 5, 6]
    for line, reason in zip(lines, ("not a valid row", "no sources", "'a' is empty", "answer is empty"), strict=True):
        assert reason in line["reason"]


def test_killed_at_some_writes_and_gone_on_with(
    questions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counter = Interruption(0)
    with monkeypatch.context() as patched:
        patched.setattr(disk, "os", counter.as_os())
        cited(questions, tmp_path / "whole", draws=0)
    expected = content(tmp_path / "whole")
    for moment in range(2, counter.seen + 1, max(1, counter.seen // 3)):
        out = tmp_path / f"cut-{moment}"
        with monkeypatch.context() as patched:
            patched.setattr(disk, "os", Interruption(moment).as_os())
            with pytest.raises(Cut):
                cited(questions, out, draws=0)
        cited(questions, out, draws=0)
        assert content(out) == expected, moment


def test_shards_give_the_same_rows(questions: Path, tmp_path: Path) -> None:
    cited(questions, tmp_path / "whole", draws=0)
    for number in (1, 2):
        found = cited(questions, tmp_path / "shared", draws=0, sharing=Sharing(Shard(number, 2)))
    assert found.is_complete
    assert content(tmp_path / "shared") == content(tmp_path / "whole")


@pytest.mark.parametrize("changes", [{"seed": 1}, {"template": f"now {TEMPLATE}"}, {"within": "source"}])
def test_other_settings_are_refused(questions: Path, tmp_path: Path, changes: dict[str, object]) -> None:
    limit = Reading(limit=1)
    cited(questions, tmp_path / "out", draws=0, reading=limit)
    with pytest.raises(DataError, match="it differs in settings"):
        cited(questions, tmp_path / "out", draws=0, reading=limit, **changes)


@pytest.mark.parametrize("written", [Writing(max_new_tokens=2), Writing(output=" good end", earlier=True)])
def test_a_row_for_each_prompt_as_alone(generator: Generator, prompts: Path, tmp_path: Path, written: Writing) -> None:
    found = raison.explain_file(generator, prompts, tmp_path / "out", "occlusion", writing=written, progress=False)
    rows = list(found.rows())
    assert len(rows) == len(PROMPTS)
    for row, prompt in zip(rows, PROMPTS, strict=True):
        expected = raison.explain(
            generator,
            prompt,
            "occlusion",
            output=written.output,
            max_new_tokens=written.max_new_tokens,
            earlier=written.earlier,
        )
        assert timeless(result_of(row)) == timeless(expected)
        assert row["prediction"] == row["target"] == expected.output
        assert tuple(row["scores"]) == expected.whole().scores
        assert row["value_full"] == expected.whole().value_full
        assert row["text"].startswith(prompt)


RECORDED = (" good end", " dull", " pleasure but")


def recorded(place: Path, outputs: tuple[str, ...] = RECORDED) -> Path:
    rows = [{"text": prompt, "wrote": output} for prompt, output in zip(PROMPTS, outputs, strict=True)]
    place.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return place


def recorded_as_table(place: Path) -> Path:
    place.write_text("text,wrote\n" + "".join(f"{row[0]},{row[1]}\n" for row in zip(PROMPTS, RECORDED, strict=True)))
    return place


def explained(model: object, data: Path, out: Path, **changes: object) -> WrittenShards:
    options = {"reading": Reading(output_column="wrote"), "progress": False, **changes}
    return raison.explain_file(model, data, out, "occlusion", **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(("write", "name"), [(recorded, "a.jsonl"), (recorded_as_table, "a.csv")])
def test_recorded_outputs_are_explained_as_each_alone(
    generator: Generator, tmp_path: Path, write: Callable[[Path], Path], name: str
) -> None:
    found = [result_of(row) for row in explained(generator, write(tmp_path / name), tmp_path / "out").rows()]
    alone = zip(PROMPTS, RECORDED, strict=True)
    expected = [raison.explain(generator, prompt, "occlusion", output=output) for prompt, output in alone]
    assert list(map(timeless, found)) == list(map(timeless, expected))


def test_a_row_without_its_recorded_output_is_kept_apart(generator: Generator, tmp_path: Path) -> None:
    written = explained(generator, recorded(tmp_path / "a.jsonl", (" good", "", " dull")), tmp_path / "out")
    assert [row["row"] for row in written.rows()] == [0, 2]
    assert [(one.row, one.reason) for one in written.rejected] == [(1, "no output in column 'wrote'")]


def test_recorded_outputs_are_gone_on_with_and_changed_ones_refused(
    generator: Generator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = recorded(tmp_path / "a.jsonl")
    explained(generator, data, tmp_path / "whole")
    with monkeypatch.context() as patched:
        patched.setattr(disk, "os", Interruption(6).as_os())
        with pytest.raises(Cut):
            explained(generator, data, tmp_path / "out")
    # The last row, which was not reached.
    recorded(data, (*RECORDED[:2], " loud"))
    with pytest.raises(DataError, match="it differs in data"):
        explained(generator, data, tmp_path / "out")
    recorded(data)
    with pytest.raises(DataError, match="it differs in data"):
        explained(generator, data, tmp_path / "out", reading=None)
    explained(generator, data, tmp_path / "out")
    assert content(tmp_path / "out") == content(tmp_path / "whole")


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"writing": Writing(output=" good")}, "leave output= out"),
        ({"writing": Writing(max_new_tokens=2)}, "max_new_tokens limits the model's own output"),
        ({"reading": Reading(output_column="wrot")}, "unknown column 'wrot'. Did you mean 'wrote'"),
    ],
)
def test_what_does_not_fit_recorded_outputs(
    generator: Generator, tmp_path: Path, changes: dict[str, object], match: str
) -> None:
    with pytest.raises((InputError, DataError), match=match):
        explained(generator, recorded(tmp_path / "a.jsonl"), tmp_path / "out", **changes)
    assert not (tmp_path / "out").exists()


def test_recorded_outputs_are_for_a_model_that_writes(tmp_path: Path) -> None:
    model = raison.load(of_letters, classes=["no", "yes"])
    with pytest.raises(InputError, match="output_column applies to generative models"):
        explained(model, recorded(tmp_path / "a.jsonl"), tmp_path / "out")


def of_letters(texts: list[str]) -> list[list[float]]:
    return [[1 - len(text) / 1000, len(text) / 1000] for text in texts]


def test_what_folders_come_to_and_their_pages(
    generator: Generator, questions: Path, prompts: Path, tmp_path: Path
) -> None:
    of_questions = cited(questions, tmp_path / "cited")
    found, rows = summary.of(of_questions), list(of_questions.rows())
    origins = [json.loads(row["notes"])["origin"] for row in rows]
    assert found.predictions == {origin: origins.count(origin) for origin in found.predictions}
    assert sum(found.predictions.values()) == len(rows)
    assert {word.text for word in found.words} <= set(SOURCES)
    page = report(tmp_path / "cited", draw=False).read_text()
    assert "What statements depend on" in page
    of_prompts = raison.explain_file(
        generator, prompts, tmp_path / "out", "occlusion", writing=Writing(max_new_tokens=1), progress=False
    )
    assert summary.of(of_prompts).predictions == {}
    assert summary.of(of_prompts).targets == {"the outputs": len(PROMPTS)}
    page = report(tmp_path / "out", draw=False).read_text()
    assert "Words with the largest effect" in page
    assert ">Predictions<" not in page


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"method": "occlusio"}, "Did you mean 'occlusion'"),
        ({"removal": "nothing"}, "nothing"),
        ({"within": "word"}, "unknown level"),
        ({"draws": -1}, "random texts"),
        ({"template": "no slots {}"}, "slot|sources"),
    ],
)
def test_mistakes_are_found_before_anything_is_written(
    questions: Path, tmp_path: Path, options: dict[str, object], match: str
) -> None:
    with pytest.raises((InputError, DataError), match=match):
        cited(questions, tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"select": "comprehensiveness"}, "select= does not apply to generative models"),
        ({"target": "yes"}, "no classes for target="),
        ({"chat": True}, "chat"),
        ({"removal": "nothing"}, "nothing"),
    ],
)
def test_what_does_not_fit_a_model_that_writes(
    generator: Generator, prompts: Path, tmp_path: Path, options: dict[str, object], match: str
) -> None:
    with pytest.raises(InputError, match=match):
        raison.explain_file(generator, prompts, tmp_path / "out", "occlusion", progress=False, **options)
    assert not (tmp_path / "out").exists()


def run(*words: object) -> dict[str, object]:
    result = CliRunner().invoke(app, [*map(str, words), "--json"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    found: dict[str, object] = json.loads(result.stdout)
    return found


def test_the_commands(
    generator: Generator, questions: Path, prompts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("raison.studies.plans.load_entry", lambda entry: WRITER)
    asked = ("--template", TEMPLATE, "--draws", 0, "--within", "source")
    found = run("cite", "--data", questions, *asked, "--out", tmp_path / "cited", "--format", "jsonl", "--limit", 9)
    assert (found["rows"], found["rejected"], found["complete"]) == (9, 4, True)
    for words, match in [
        (("--data", questions, "--limit", 3), "--limit is for files: give --data and --out DIR"),
        (("--data", questions, "--data", questions), "several files need a folder"),
        ((QUESTION, "--data", questions, "--out", tmp_path / "x"), "QUESTION is for one text"),
    ]:
        with pytest.raises(InputError, match=match):
            run("cite", *words)
    monkeypatch.setattr("raison.studies.plans.load_entry", lambda entry: generator)
    asked = ("--method", "occlusion", "--max-new-tokens", 1, "--out", tmp_path / "out")
    assert run("explain", "--data", prompts, *asked)["explanations"] == len(PROMPTS)
    asked = ("--method", "occlusion", "--output-column", "wrote", "--format", "jsonl", "--out", tmp_path / "recorded")
    assert run("explain", "--data", recorded(tmp_path / "a.jsonl"), *asked)["explanations"] == len(PROMPTS)
    assert [row["target"] for row in read(tmp_path / "recorded").rows()] == list(RECORDED)
