"""Comparisons of answers of a model that copies words which it has read: their log-probability is known."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

import raison
from raison.core.errors import DataError, InputError, UnsupportedError
from raison.core.registry import label_of
from raison.data.question_rows import Gold, QuestionRow
from raison.data.questions import read_questions
from raison.explaining.answers import answers_of
from raison.metrics.harmless_change import HarmlessChange
from raison.runs.run import read_run
from raison.text.edits.sources import edit_sources
from raison.text.sourced import SourcePlace
from tests.copying import copying_writer, log_probability
from tests.tiny import build_language_model

SOURCES = {
    "owl": "owls hunt at night . their wings make no sound .",
    "port": "Brandt founded the port . every winter its harbour froze .",
    "tea": "a house by the river sells tea . guests like it .",
}
TEMPLATE = "read {sources} then answer {question} :"
ROWS = [
    {"question": "who founded it", "sources": SOURCES, "answer": "Brandt founded the port .", "gold": "port"},
    {
        "question": "what of wings",
        "sources": SOURCES,
        "answer": "wings make no sound .",
        "gold": [{"source": "owl", "text": "their wings make no sound ."}],
    },
]
WORDS = [*SOURCES.values(), TEMPLATE, *(str(row["question"]) for row in ROWS)]
WRITER = copying_writer(WORDS)
EXACT = ["comprehensiveness", "sufficiency", "log_odds", "aopc_comprehensiveness", "deletion_auc", "token_f1"]


def compare(**changes):
    given = {"methods": ["occlusion"], "metrics": EXACT, "template": TEMPLATE, **changes}
    return raison.compare(WRITER, given.pop("texts", ROWS), **given, progress=False)


def value(comparison, method, metric):
    """A metric's value of each text."""
    row = next(one for one in comparison.rows if one.method == method)
    return next(one for one in row.metrics if one.metric == metric).values


def literal(row, kept):
    """The log-probability of a row's answer after a prompt with these sources, word by word."""
    texts = " ".join(SOURCES[name] for name in kept)
    prompt = TEMPLATE.replace("{sources}", texts).replace("{question}", str(row["question"])).split()
    return log_probability(str(row["answer"]).split(), prompt, len(WRITER.tokenizer))


def test_metrics_are_differences_of_log_probabilities():
    table = compare()
    assert [row.method for row in table.rows] == ["occlusion", "random"]
    assert table.of == "log_probability"
    # One of three sources is a fifth of them, rounded up: the one that leaving out hurts most.
    for row, top, found, kept in zip(
        ROWS,
        ("port", "owl"),
        value(table, "occlusion", "comprehensiveness"),
        value(table, "occlusion", "sufficiency"),
        strict=True,
    ):
        whole = literal(row, SOURCES)
        assert found == pytest.approx(whole - literal(row, [name for name in SOURCES if name != top]), abs=1e-5)
        assert kept == pytest.approx(whole - literal(row, [top]), abs=1e-5)
        assert found > 3
    np.testing.assert_allclose(value(table, "occlusion", "token_f1"), 1.0)
    assert max(value(table, "random", "comprehensiveness")) <= max(value(table, "occlusion", "comprehensiveness"))


def test_gold_marks_sources_and_sentences():
    found = answers_of(WRITER, ROWS, TEMPLATE)
    marked = [prompt[span.start : span.end] for (prompt, _), ((span,),) in zip(found.texts, found.gold, strict=True)]
    assert marked == [SOURCES["port"], "their wings make no sound ."]
    by_sentence = compare(unit="sentence", methods=["occlusion"], metrics=["token_f1", "ground_truth_overlap"])
    # All of a source is known to matter, and its second sentence does not: one of two is found.
    assert value(by_sentence, "occlusion", "token_f1") == pytest.approx([0.5, 1.0])
    assert value(by_sentence, "occlusion", "ground_truth_overlap")[1] == 1.0


def test_another_removal_than_that_of_citations_is_told():
    told = "tokens of removed sources become 'unk', and raison.cite deletes sources (removal='delete')"
    assert compare(metrics=["comprehensiveness"], removal="unk").cautions == (told,)
    assert compare(metrics=["comprehensiveness"], removal="delete").cautions == ()
    # There is nothing to compare with where there are no sources.
    alone = raison.load(*build_language_model("llama"))
    settings = {"unit": "sentence", "progress": False}
    assert raison.compare(alone, ["the sea is good"], "occlusion", "comprehensiveness", **settings).cautions == ()
    found = compare(metrics=["log_probability_drop"], removal="delete")
    for row, drop in zip(ROWS, value(found, "occlusion", "log_probability_drop"), strict=True):
        given = {"answer": row["answer"], "template": TEMPLATE, "method": "occlusion", "within": "source", "draws": 0}
        cited = raison.cite(WRITER, row["question"], SOURCES, **given)
        assert raison.evaluate(WRITER, cited, "log_probability_drop", progress=False).metrics[0].values == (drop,)


def test_each_statement_is_a_row():
    both = {"question": "and", "sources": SOURCES, "answer": "Brandt founded the port . Wings make no sound ."}
    writer = copying_writer([*WORDS, "and Wings"])
    found = answers_of(writer, [both], TEMPLATE)
    assert [found.answers[0].text[a:b] for a, b in found.answers[0].statements] == [
        "Brandt founded the port .",
        "Wings make no sound .",
    ]
    table = raison.compare(writer, found, "occlusion", "comprehensiveness", target="each", progress=False)
    assert table.texts == 2
    assert len(value(table, "occlusion", "comprehensiveness")) == 2


def test_a_run_in_a_folder_is_the_same_and_can_be_resumed(tmp_path: Path):
    alone = compare()
    first = compare(out=tmp_path / "run")
    again = compare(out=tmp_path / "run")
    for metric in EXACT:
        assert value(first, "occlusion", metric) == value(alone, "occlusion", metric)
        assert value(again, "occlusion", metric) == value(alone, "occlusion", metric)
    run = read_run(tmp_path / "run")
    explained = run.explanations("occlusion", 0)
    assert [e.place.text for e in explained if e.place] == [row["answer"] for row in ROWS]
    assert {e.outputs for e in explained} == {"statement"}
    assert [unit.name for unit in explained[0].units] == list(SOURCES)
    with pytest.raises(DataError):
        compare(out=tmp_path / "run", texts=[ROWS[0], ROWS[0]])


def steadiness(row, method, edits, tolerance):
    """Rank correlations with citations of the sources as each edit leaves them; only harmless edits count."""
    given = {"answer": row["answer"], "template": TEMPLATE, "method": method, "within": "source", "draws": 0}
    before = raison.cite(WRITER, row["question"], SOURCES, **given)
    blocks = zip(before.sources, before.removed, strict=True)
    places = [SourcePlace(unit.name, start, unit.start, unit.end, end) for unit, (start, end) in blocks]
    found = []
    for name in edits:
        edited = edit_sources(name, before.prompt, places)
        if edited is None:
            continue
        sources = {place.id: edited.text[place.first : place.last] for place in edited.places}
        after = raison.cite(WRITER, row["question"], sources, **given)
        assert after.prompt == edited.text
        [was], [now] = before.statements, after.statements
        if abs(was.log_probability - now.log_probability) > tolerance * (was.log_probability - was.without):
            continue
        steps = [
            [round(c.scores[0][c.ids.index(name)] / max(map(abs, c.scores[0])) / tolerance) for name in SOURCES]
            for c in (before, after)
        ]
        if min(len(set(one)) for one in steps) > 1:
            found.append(spearmanr(*steps).statistic)
    return found


@pytest.mark.parametrize("method", ["occlusion", "kernel_shap(samples=8)", "random"])
def test_harmless_changes_are_edits_of_sources(method):
    edits, tolerance = ("casing", "neutral", "order"), 0.1
    metric = HarmlessChange(edits, tolerance)
    values_found = value(compare(methods=[method], metrics=[metric]), method, label_of(metric))
    for row, found in zip(ROWS, values_found, strict=True):
        expected = steadiness(row, method, edits, tolerance)
        assert len(expected) >= 2
        assert found == pytest.approx(np.mean(expected))
    # Which words were read decides, and not in which order: a method that looks at the model stays the same.
    by_order = HarmlessChange(("order",), tolerance)
    [row, _] = compare(methods=[method], metrics=[by_order]).rows if method != "random" else (None, None)
    assert row is None or row.metrics[0].values == pytest.approx([1.0, 1.0])


def test_without_sources_no_edit_is_made():
    written = raison.explain(WRITER, "owls hunt at night", "occlusion", output=" owls", of="log_probability")
    [scores] = raison.evaluate(WRITER, written, "harmless_change", progress=False).metrics
    assert np.isnan(scores.values).all()


def test_scores_that_were_summed_from_sentences_are_not_made_again():
    given = {"answer": ROWS[0]["answer"], "template": TEMPLATE, "draws": 0, "method": "kernel_shap(samples=16)"}
    cited = raison.cite(WRITER, ROWS[0]["question"], SOURCES, **given)
    with pytest.raises(UnsupportedError, match="harmless_change needs the method itself"):
        raison.evaluate(WRITER, cited, "harmless_change", progress=False)


def test_rows_of_a_file(tmp_path: Path):
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, ROWS)), encoding="utf-8")
    rows = read_questions(path)
    assert rows[0] == QuestionRow(1, "who founded it", SOURCES, "Brandt founded the port .", (Gold("port"),))
    start = SOURCES["owl"].index("their")
    assert rows[1].gold == (Gold("owl", start, len(SOURCES["owl"])),)
    assert value(compare(texts=rows), "occlusion", "token_f1") == (1.0, 1.0)


BAD_GOLD = [
    "moon",
    ["port", "moon"],
    3,
    {"source": "port", "text": "absent"},
    {"source": "port", "start": 9, "end": 3},
    {"source": "port", "end": 999},
]


@pytest.mark.parametrize("gold", BAD_GOLD)
def test_gold_that_is_no_source_is_refused(gold):
    with pytest.raises(DataError, match="the text: gold"):
        compare(texts=[ROWS[0] | {"gold": gold}])


@pytest.mark.parametrize("metric", ["max_sensitivity", "consistency", "simulatability"])
def test_metrics_that_do_not_apply_say_why(metric):
    with pytest.raises(UnsupportedError, match=f"{metric}.* needs"):
        compare(metrics=[metric])


def test_mistakes_are_named():
    for changes, message in (
        ({"texts": ROWS[0]}, "several"),
        ({"texts": [ROWS[0], "a prompt"]}, "some texts have sources"),
        ({"unit": "word"}, "unit='part'"),
        ({"truncate": True}, "truncate"),
        ({"target": "never said"}, "not part of the answer"),
        ({"target": "each", "threshold": 0.5}, "threshold"),
        ({"text": "question"}, "leave them out"),
    ):
        with pytest.raises(InputError, match=message):
            compare(**changes)
    with pytest.raises(UnsupportedError, match="self_explanation"):
        compare(methods=["self_explanation"])


def test_a_row_without_gold_is_left_out_of_what_needs_it_and_keeps_no_other_from_it():
    for missing in ({}, {"gold": []}):
        rows = [ROWS[0], {name: value for name, value in ROWS[1].items() if name != "gold"} | missing]
        table = compare(texts=rows, methods=["occlusion"], metrics=["recall_at_top"])
        assert value(table, "occlusion", "recall_at_top")[0] == 1.0
        assert table["occlusion"]["recall_at_top"].summary.count == 1
