"""raison.cite on a model that copies words which it has read, whose probabilities are known in closed form."""

import copy
import json
import re

import jaxtyping
import numpy as np
import pytest
import torch

import raison
from raison import Citations
from raison.core.errors import DataError, InputError, UnknownNameError
from raison.explaining.sources.sourced_prompt import sourced_prompt
from raison.models.adapters.writing.generator import Generator
from tests.copying import copying_writer, log_probability
from tests.tiny import build_language_model, build_writer

SOURCES = {
    "owl": "owls hunt at night . their wings make no sound .",
    "port": "Brandt founded the port . every winter its harbour froze .",
    "tea": "a house by the river sells tea . guests like it .",
}
TEMPLATE = "read {sources} then answer {question} :"
QUESTION = "who founded it"
ANSWER = "Brandt founded the port . wings make no sound ."
RETOLD = "in spring Brandt founded the port . snow lay long ."
WRITER = copying_writer([*SOURCES.values(), RETOLD, TEMPLATE, QUESTION, ANSWER, "unheard words"])
VOCABULARY = len(WRITER.tokenizer)
SPANS = [(0, 25), (26, 47)]


def cite(**changes: object) -> Citations:
    given = {"sources": SOURCES, "answer": ANSWER, "template": TEMPLATE, **changes}
    return raison.cite(WRITER, QUESTION, **given)


def literal(kept: list[str], statement: int) -> float:
    """The log-probability of a statement after a prompt with these texts for sources."""
    prompt = TEMPLATE.replace("{sources}", " ".join(kept)).replace("{question}", QUESTION).split()
    parts = [ANSWER[start:end].split() for start, end in SPANS]
    before = [word for part in parts[:statement] for word in part]
    return log_probability(parts[statement], prompt + before, VOCABULARY)


def without(name: str) -> list[str]:
    return [text for other, text in SOURCES.items() if other != name]


def test_scores_are_what_leaving_out_a_source_does():
    c = cite()
    assert [s.text for s in c.statements] == ["Brandt founded the port .", "wings make no sound ."]
    assert [(s.start, s.end) for s in c.statements] == SPANS
    assert [s.tokens for s in c.statements] == [5, 5]
    assert c.ids == ("owl", "port", "tea")
    assert [c.prompt[unit.start : unit.end] for unit in c.sources] == list(SOURCES.values())
    for i, statement in enumerate(c.statements):
        whole = literal(list(SOURCES.values()), i)
        assert statement.log_probability == pytest.approx(whole, abs=1e-5)
        assert statement.without == pytest.approx(literal([], i), abs=1e-5)
        for j, name in enumerate(SOURCES):
            assert c.scores[i][j] == pytest.approx(whole - literal(without(name), i), abs=1e-5)
            assert c.checks[i][j].drop == pytest.approx(c.scores[i][j], abs=1e-9)
    assert (c.top(0), c.top(1)) == ("port", "owl")


def test_sentences_within_the_sources_that_matter():
    c = cite(draws=0)
    for i, top in enumerate(["port", "owl"]):
        best, score = c.passages(i)[0]
        first, _, second = SOURCES[top].partition(" . ")
        gone, stays = (first + " .", second) if i == 0 else (second, first + " .")
        assert (best.text, best.name) == (gone, top)
        kept = [stays if name == top else text for name, text in SOURCES.items()]
        assert score == pytest.approx(literal(list(SOURCES.values()), i) - literal(kept, i), abs=1e-5)
        # A source whose removal does nothing, or raises the probability, is not looked into.
        assert {unit.name for unit, _ in c.passages(i)} == {top}
    assert c.checks == ()
    assert c.statements[0].origin is None
    with pytest.raises(InputError, match="no light"):
        c.used(0)


def test_lights_and_origins():
    c = cite(answer="Brandt founded the port . wings make no sound . unheard words",
             statements=[(0, 25), (26, 47), (48, 61)])  # fmt: skip
    assert [c.used(i) for i in range(3)] == [("port",), ("owl",), ()]
    assert [s.origin for s in c.statements] == ["sources", "sources", "memory"]
    assert {check.light for row in c.checks for check in row} == {"used", "not used"}


def test_two_sources_that_say_the_same_are_seen_together():
    twice = {"one": SOURCES["port"], "two": RETOLD, "owl": SOURCES["owl"], "tea": SOURCES["tea"]}
    c = cite(sources=twice, answer="Brandt founded the port .", statements=[(0, 25)])
    # Left out alone, neither is missed: only all of them together are.
    assert c.used(0) == ()
    assert c.statements[0].origin == "together"
    assert all(check.alike == () for check in c.checks[0])


def test_near_duplicates_are_removed_together():
    twice = {
        "one": SOURCES["port"],
        "owl": SOURCES["owl"],
        "two": f"guests like {SOURCES['port']}",
        "tea": SOURCES["tea"],
    }
    c = cite(sources=twice, answer="Brandt founded the port .", statements=[(0, 25)])
    gone = literal(list(twice.values()), 0) - literal([SOURCES["owl"], SOURCES["tea"]], 0)
    one, owl, two, tea = c.checks[0]
    assert (one.alike, two.alike, owl.alike, tea.alike) == (("two",), ("one",), (), ())
    assert (one.drop, two.drop) == pytest.approx((gone, gone), abs=1e-5)
    assert set(c.used(0)) == {"one", "two"}
    assert c.statements[0].origin == "sources"
    # Leaving out one of them is still what the score says.
    assert max(c.scores[0]) < gone / 2
    assert "used, together with two" in str(c)
    assert Citations.from_json(c.to_json()) == c


def test_one_source_has_nothing_to_be_compared_with():
    c = cite(sources={"port": SOURCES["port"]})
    assert c.checks[0][0].bar is None
    assert c.checks[0][0].light == "undecided"
    assert c.statements[0].origin == "undecided"


@pytest.mark.parametrize("method", ["occlusion", "kernel_shap", "shapley_exact", "lime", "random"])
@pytest.mark.parametrize("within", ["sentence", "source"])
def test_other_methods_go_through_the_same_door(method, within):
    c = cite(method=method, within=within, draws=0)
    assert c.method == method
    assert c.of == "log_probability"
    assert np.isfinite(c.scores).all()
    if method != "random":
        assert (c.top(0), c.top(1)) == ("port", "owl")
    if method in ("kernel_shap", "shapley_exact"):
        for statement, row in zip(c.statements, c.scores, strict=True):
            assert sum(row) == pytest.approx(statement.log_probability - statement.without, abs=1e-6)
    assert all((score is None) == (within == "source") for row in c.within for score in row)
    if within == "sentence" and method == "shapley_exact":
        for row, inner in zip(c.scores, c.within, strict=True):
            assert row[1] == pytest.approx(inner[2] + inner[3])


def test_every_masked_prompt_is_run_once_for_all_statements_and_levels(monkeypatch):
    runs = []
    forward = type(WRITER.core.base_model).forward
    monkeypatch.setattr(
        type(WRITER.core.base_model),
        "forward",
        lambda self, input_ids, **more: runs.extend(input_ids.tolist()) or forward(self, input_ids, **more),
    )
    c = cite(method="occlusion", draws=0)
    # Everything, nothing, 3 sources, 6 sentences; beginnings of the answer are part of the same pass.
    assert c.evaluations == 2 + 3 + 6
    cited = [row for row in runs if len(row) > 8]
    assert len(cited) <= c.evaluations + 3


@pytest.mark.parametrize(("method", "forwards", "backwards"), [
    # A pass of the whole prompt, and the two ends that every citation reports.
    ("attention_average", 2 + 1, 0),
    # The two ends, the end without sources in place, and the points of the path, which the statements share.
    ("integrated_gradients(steps=3)", 3 + 2 + 3, 10 * 3),
])  # fmt: skip
def test_the_passes_of_methods_that_look_inside_are_counted(method, forwards, backwards):
    writer = Generator(*build_language_model("llama"), "llama")
    c = raison.cite(writer, "the old sailor?", {"a": "the sea is wet.", "b": "a dull plot."}, answer="the sea. wet.",
                    template="plain", method=method, draws=0)  # fmt: skip
    tokens = sum(statement.tokens for statement in c.statements)
    assert (c.evaluations, c.gradients) == (forwards, backwards // 10 * tokens)
    assert f"{c.evaluations} evaluations" in str(c)
    assert Citations.from_json(c.to_json()) == c


def test_what_is_reported_is_measured_from_the_baseline_of_the_scores():
    writer = Generator(*build_language_model("llama"), "llama")
    given = {"answer": "the sea is wet.", "template": "plain", "method": "integrated_gradients(steps=200)", "draws": 0}
    sources = {"a": "the sea is wet.", "b": "a dull plot."}
    default, named = (raison.cite(writer, "the sailor?", sources, **given, **more) for more in ({}, {"removal": "unk"}))
    for c in (default, named):
        [statement], [scores] = c.statements, c.scores
        assert sum(scores) == pytest.approx(statement.log_probability - statement.without, abs=2e-3)
    assert default.removal == default.notes["baseline"] != "delete"
    assert "delete" not in str(default)


def test_names_of_special_tokens_in_sources_are_plain_text():
    writer = Generator(*build_language_model("llama"), "llama")
    name = writer.tokenizer.eos_token
    special = writer.tokenizer.convert_tokens_to_ids(name)
    for template, count in (("plain", 0), (f"{{sources}} {name} {{question}}", 1)):
        sourced = sourced_prompt(
            writer, f"who {name} is it?", {"a": f"the sea {name} is wet.", "b": "a dull plot."}, template
        )
        prompt = sourced.source.prompt
        assert prompt.ids.count(special) == count
        assert name in sourced.source.sources[0].text
        assert writer.output(prompt, " the sea")[0].text == " the sea"
    assert writer.prompt(f"the sea {name} is wet").ids.count(special) == 1


@pytest.mark.parametrize("name", ["bart", "t5"])
def test_names_of_special_tokens_do_not_end_what_an_encoder_reads(name):
    writer = Generator(*build_writer(name), name)
    end = writer.tokenizer.eos_token
    special = writer.tokenizer.convert_tokens_to_ids(end)
    hostile, plain = (
        sourced_prompt(
            writer, "who is it?", {"a": f"the sea {text}is wet.", "b": "a dull plot."}, "plain"
        ).source.prompt
        for text in (f"{end} ", "")
    )
    assert hostile.ids.count(special) == plain.ids.count(special)
    assert len(hostile.ids) > len(plain.ids)


@pytest.mark.parametrize(("changes", "said"), [
    ({"statements": (0, 3)}, r"the statements are \(0, 3\): give spans"),
    ({"statements": "owls"}, "the statements are 'owls': give spans"),
    ({"statements": [(0.0, 3.5)]}, "give spans of the answer in characters"),
    ({"statements": [(0, 3, 1)]}, "give spans of the answer in characters"),
    ({"answer": 5}, "the answer is 5: give a string"),
])  # fmt: skip
def test_statements_and_answers_of_other_types_are_one_line(changes, said):
    with pytest.raises(InputError, match=said):
        cite(**changes)


def test_statements_of_an_answer_are_as_alone():
    both = cite(draws=4)
    for i, span in enumerate(SPANS):
        alone = cite(statements=[span], draws=4)
        np.testing.assert_allclose(alone.scores[0], both.scores[i], atol=1e-9)
        assert alone.checks[0] == both.checks[i]


def test_the_model_writes_the_answer_itself():
    name = "llama"
    writer = Generator(*build_language_model(name), name)
    before = {key: value.clone() for key, value in writer.model.state_dict().items()}
    state, training = torch.get_rng_state(), writer.model.training
    c = raison.cite(writer, "the old sailor?", {"a": "the sea is wet.", "b": "a dull plot."}, template="plain",
                    max_new_tokens=5, draws=2)  # fmt: skip
    assert "".join(s.text for s in c.statements).replace(" ", "") in c.answer.replace(" ", "").replace("\n", "")
    assert all(torch.equal(value, before[key]) for key, value in writer.model.state_dict().items())
    assert torch.equal(torch.get_rng_state(), state)
    assert writer.model.training == training
    # A given answer that equals the model's own has the same scores, unless its tokens are others.
    assert c.statements[0].log_probability <= 0


def test_json_both_ways_and_frame():
    c = cite(judge=lambda source, statement: float(statement[:6] in source))
    assert Citations.from_json(c.to_json()) == c
    assert c.supported == ((0.0, 1.0, 0.0), (0.0, 0.0, 0.0)) or c.supported[0][1] == 1.0
    frame = c.to_frame()
    assert list(frame.columns) == ["statement", "text", "source", "score", "drop", "light", "supported"]
    assert len(frame) == 6
    shown = str(c)
    assert "port" in shown
    assert "used" in shown
    assert "supported" in shown


BAD = {
    "scores": [[1.0, 2.0, 3.0]],
    "within": [[0.0], [0.0]],
    "checks": [[{"drop": 1.0, "bar": None, "light": "green"}] * 3] * 2,
    "intervals": [[[1.0, 2.0]] * 2] * 2,
    "supported": [[2.0, 0.0, 0.0]] * 2,
    "statements": [],
    "sources": [],
    "sentences": [{"start": 0, "end": 4, "text": "read", "segment": 0, "name": "moon"}],
    "seconds": -1,
    "evaluations": 1.5,
    "answer": 3,
    "draws": -1,
    "schema": 99,
}


def test_the_number_of_draws_is_kept_where_it_was_recorded():
    data = json.loads(cite(draws=2).to_json())
    assert Citations.from_dict(data).draws == 2
    assert Citations.from_dict({name: value for name, value in data.items() if name != "draws"}).draws is None


@pytest.mark.parametrize("name", BAD)
def test_bad_json_is_refused(name):
    data = json.loads(cite(draws=2).to_json())
    with pytest.raises(DataError):
        Citations.from_dict(data | {name: BAD[name]})
    if name not in ("schema", "intervals", "supported", "draws"):
        short = copy.copy(data)
        del short[name]
        with pytest.raises(DataError, match=name):
            Citations.from_dict(short)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sources": {}}, "no source"),
        ({"sources": {"a": "  "}}, "'a' is empty"),
        ({"sources": {"": "text"}}, "id"),
        ({"sources": "text"}, "sources are"),
        ({"answer": " "}, "answer is empty"),
        ({"statements": [(0, 99)]}, "(0, 99)"),
        ({"statements": []}, "no statement"),
        ({"statements": [(25, 26)]}, "before the end of the one before"),
        ({"template": "{question}"}, "{sources} 0 times"),
        ({"max_new_tokens": 4}, "max_new_tokens"),
        ({"draws": -1}, "draws"),
        ({"judge": lambda _s, _t: 7}, "judge"),
        ({"judge": lambda _s, _t: "0.5"}, "judge"),
        ({"judge": lambda _s, _t: float("nan")}, "judge"),
        ({"judge": "a name"}, "the judge of support is a str"),
        ({"judge": WRITER}, "the judge of support is a Generator"),
        ({"judge": WRITER.model}, "raison.load"),
        ({"seed": -1}, "seed cannot be -1"),
        ({"seed": 0.5}, "seed cannot be 0.5"),
    ],
)
def test_mistakes_are_named(changes, message):
    with pytest.raises((InputError, DataError), match=re.escape(message)):
        cite(**changes)


def test_unknown_names():
    for changes in ({"within": "word"}, {"template": "fancy"}, {"method": "oclusion"}):
        with pytest.raises(UnknownNameError):
            cite(**changes)
    with pytest.raises(InputError, match="loaded? one without a prompt|load one"):
        raison.cite("model", QUESTION, SOURCES)


def test_a_label_comes_and_goes_with_its_source():
    template = raison.explaining.cite.SourceTemplate("own", TEMPLATE, source="note {id} {text}")
    writer = copying_writer([*SOURCES.values(), TEMPLATE, QUESTION, ANSWER, "note owl port tea"])
    c = raison.cite(writer, QUESTION, SOURCES, answer="note owl", template=template, draws=0)
    # Only the label of the first source says "owl".
    assert c.top(0) == "owl"
    assert c.scores[0][0] > 3
    # One sentence alone does not take it away.
    assert max(score for _, score in c.passages(0)) < 1


@pytest.mark.parametrize("kind", [np.float32, np.bool_, torch.tensor, bool, int, np.float64])
def test_a_judge_answers_with_numbers_of_any_library(kind):
    assert cite(judge=lambda _s, _t: kind(1), draws=0).supported == ((1.0, 1.0, 1.0),) * 2


def test_a_judge_that_cannot_judge_costs_nothing(monkeypatch):
    monkeypatch.setattr(raison.explaining.cite, "sourced_prompt", lambda *_: pytest.fail("began"))
    with pytest.raises(InputError, match="the judge of support"):
        cite(judge=3)


@pytest.mark.parametrize("around", [(" ", ""), ("", "\n"), ("\n ", " \n")])
def test_statements_of_an_answer_in_white_space_are_spans_of_it_as_given(around):
    before, after = around
    given = f"{before}{ANSWER}{after}"
    lead = len(before)
    exact = [(start + lead, end + lead) for start, end in SPANS]
    wide = [(0, 25 + lead), (25 + lead, len(given))]
    for spans in (exact, wide, [tuple(map(np.int64, span)) for span in exact]):
        c = cite(answer=given, statements=spans, draws=0)
        assert [(s.start, s.end, s.text) for s in c.statements] == [(*span, ANSWER[slice(*span)]) for span in SPANS]
        assert Citations.from_json(c.to_json()) == c
    for outside in ((-1, 5), (3, len(given) + 1)):
        with pytest.raises(InputError, match="is outside the answer"):
            cite(answer=given, statements=[outside])


def test_numbers_of_numpy_are_settings():
    c = cite(seed=np.int64(3), draws=np.int64(4))
    assert c.checks == cite(seed=3, draws=4).checks
    assert Citations.from_json(c.to_json()) == c


def test_a_template_of_another_type_is_one_line():
    # Elsewhere than in tests nothing checks the types of what callers give.
    jaxtyping.config.update("jaxtyping_disable", True)
    with pytest.raises(InputError, match="the template is 5"):
        cite(template=5)
