"""The result of explaining an output: JSON, single tokens, the whole output, and what people see of it."""

import json
import math
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
import torch

from raison.core.errors import DataError, InputError
from raison.core.inputs.unit import Unit
from raison.core.results.explanation import Explanation
from raison.core.results.generation import GenerationExplanation, OutputToken
from raison.core.targets.target import Target, resolve_target
from raison.report.explanations.html import fragment, page
from raison.report.explanations.terminal import explanation_plain

PROMPT, OUTPUT = "the sea is", " calm now"


def token(text, start, probability, **settings):
    values = {"value_full": 0.5, "value_empty": 0.25, "evaluations": 4, "gradients": 2}
    return OutputToken(text, 7, start, start + len(text), probability, **{**values, **settings})


def explanation(earlier=False, contrast=None, **changes):
    tokens = [token(" calm", 10, 0.5), token(" now", 15, 0.2)]
    if contrast:
        tokens = [replace(own, against=contrast, against_probability=0.1) for own in tokens]
    units = [Unit(0, 3, "the"), Unit(4, 7, "sea"), Unit(8, 10, "is")]
    rows = [(0.1, 0.4, -0.2), (0.0, -0.3, 0.05)]
    if earlier:
        units, rows = [*units, Unit(10, 15, " calm")], [rows[0], (*rows[1], 0.6)]
    values = {
        "prompt": PROMPT,
        "output": OUTPUT,
        "tokens": tuple(tokens),
        "unit": "word",
        "units": tuple(units),
        "scores": tuple(rows),
        "of": "log_probability",
        "method": "occlusion",
        "config": {"window": 1},
        "model": "tiny",
        "removal": "mask",
        "seed": 3,
        "seconds": 0.5,
        "earlier": earlier,
        "version": "0.1.0",
    }
    return GenerationExplanation(**{**values, **changes})


@pytest.mark.parametrize("earlier", [False, True])
@pytest.mark.parametrize("contrast", [None, " wild"])
def test_json_round_trip(earlier, contrast):
    e = explanation(earlier, contrast, notes={"border": "doubtful"})
    assert GenerationExplanation.from_json(e.to_json()) == e
    assert json.loads(e.to_json())["tokens"][0]["text"] == " calm"


def test_broken_json_is_refused():
    data = explanation().to_dict()
    del data["tokens"], data["seed"]
    with pytest.raises(DataError, match="fields seed, tokens are missing"):
        GenerationExplanation.from_dict(data)
    with pytest.raises(DataError, match="schema 99"):
        GenerationExplanation.from_dict({"schema": 99})
    for text in ("[", "[1]"):
        with pytest.raises(DataError, match="not"):
            GenerationExplanation.from_json(text)


def test_one_token():
    e = explanation(contrast=" wild").token(1)
    assert (e.text, e.target, e.against) == (PROMPT, " now", " wild")
    assert e.scores == (0.0, -0.3, 0.05)
    assert e.classes == (" now", " wild", "<other>")
    assert e.probabilities == pytest.approx((0.2, 0.1, 0.7))
    assert explanation().token(-1).target == " now"
    for number in (2, -3):
        with pytest.raises(InputError, match="there are 2"):
            explanation().token(number)


def test_one_token_with_earlier_outputs():
    e = explanation(earlier=True)
    first, second = e.token(0), e.token(1)
    assert (first.text, len(first.units)) == (PROMPT, 3)
    assert (second.text, second.units[3].text, second.scores[3]) == (PROMPT + " calm", " calm", 0.6)
    assert second.text[second.units[3].start : second.units[3].end] == " calm"


def test_a_character_of_several_tokens_can_be_read_again():
    tokens = (token("好", 10, 0.5), token("好", 10, 0.2))
    units = (*explanation().units, Unit(10, 11, "好"))
    e = explanation(earlier=True, output="好", tokens=tokens, units=units)
    assert GenerationExplanation.from_json(e.to_json()) == e
    for one in (e.token(0), e.token(1), e.whole()):
        assert Explanation.from_json(one.to_json()) == one


def test_whole_output_is_the_sum():
    e = explanation(earlier=True)
    whole = e.whole()
    assert whole.scores == pytest.approx((0.1, 0.1, -0.15, 0.6))
    assert (whole.value_full, whole.value_empty) == (1.0, 0.5)
    assert whole.probabilities[0] == pytest.approx(0.1)
    assert e.log_probability == pytest.approx(math.log(0.1))
    assert whole.target == OUTPUT


def test_the_whole_of_a_contrast_can_be_read_again():
    whole = explanation(contrast=" wild").whole()
    assert whole.classes == (OUTPUT, whole.against, "<other>")
    assert sum(whole.probabilities) == pytest.approx(1)
    assert Explanation.from_json(whole.to_json()) == whole


def test_the_whole_keeps_the_baseline_that_all_tokens_share():
    first, second = (token(" calm", 10, 0.5), token(" now", 15, 0.2))
    noted = [
        replace(one, notes={"baseline": name}) for one, name in ((first, "mask"), (second, "mask"), (second, "unk"))
    ]
    assert explanation(tokens=(noted[0], noted[1])).whole().notes == {"baseline": "mask"}
    assert explanation(tokens=(noted[0], noted[2])).whole().notes == {}


def test_cost_is_shared_where_units_are():
    assert (explanation().evaluations, explanation().gradients) == (4, 4)
    assert explanation(earlier=True).evaluations == 8


def test_impossible_token_has_no_log():
    e = explanation(tokens=(token(" calm", 10, 0.0), token(" now", 15, 0.2)))
    assert e.log_probability == -math.inf
    assert e.whole().probabilities[0] == 0


def test_frame_has_a_row_for_each_score():
    frame = explanation(earlier=True).to_frame()
    assert len(frame) == 7
    assert frame["score"].tolist() == [0.1, 0.4, -0.2, 0.0, -0.3, 0.05, 0.6]
    assert frame["output"].tolist()[3] == " now"


def test_log_probability_target():
    logits = torch.tensor([[1.0, 2.0, -1.0], [0.0, 0.5, 3.0]], dtype=torch.float64)
    target = resolve_target(None, "log_probability", logits, ("a", "b", "c"), False)
    shares = logits.exp() / logits.exp().sum(1, keepdim=True)
    assert target.scalar(logits).tolist() == pytest.approx(shares.max(1).values.log().tolist())
    several = Target(torch.tensor([2, 0]), None, "log_probability", True)
    expected = [math.log(1 / (1 + math.exp(1.0))), math.log(0.5)]
    assert several.scalar(logits).tolist() == pytest.approx(expected)
    # Where the probability itself would round to zero.
    assert float(Target(torch.tensor([0]), None, "log_probability").scalar(torch.tensor([[-500.0, 500.0]]))) == -1000


class Reader(HTMLParser):
    """Elements with their attributes, the coloured text, and the script's data."""

    def __init__(self, markup):
        super().__init__()
        self.elements, self.text, self.data = [], "", []
        self._inside = self._script = False
        self._styles = dict(re.findall(r'html (?:\[data-style="(\d+)"\]){4} \{(.*?)\}', markup))
        self.feed(markup)
        self.close()

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        if "data-style" in found:
            found["style"] = self._styles[found.pop("data-style")]
        self.elements.append((tag, found))
        if tag == "div" and (found.get("class") or "").startswith("text"):
            self._inside = True
        self._script = tag == "script" and found.get("type") == "application/json"

    def handle_endtag(self, tag):
        if tag == "div":
            self._inside = False
        self._script = False

    def handle_data(self, data):
        if self._inside:
            self.text += data
        if self._script:
            self.data.append(json.loads(data))

    def of_class(self, name):
        return [found for _, found in self.elements if name in (found.get("class") or "").split()]


@pytest.mark.parametrize("earlier", [False, True])
def test_page_has_the_text_the_matrix_and_a_state_for_each_token(earlier):
    e = explanation(earlier)
    reader = Reader(page(e))
    assert reader.text == (PROMPT + " calm" if earlier else PROMPT)
    assert [found["data-token"] for found in reader.of_class("out")] == ["all", "0", "1"]
    assert len(reader.of_class("cell")) == sum(map(len, e.scores))
    states = reader.data[0]["states"]
    assert list(states) == ["all", "0", "1"]
    units = len(reader.of_class("unit"))
    for state in states.values():
        assert len(state["shades"]) == len(state["values"]) == units
    if earlier:
        assert states["0"]["shades"][3] is None
        assert states["0"]["values"][3] == "not written yet"
    # Each token on its own scale: the strongest unit has the last shade of its side.
    middle = len(reader.data[0]["palette"]) // 2
    assert states["0"]["shades"][1] == 2 * middle
    assert states["all"]["high"].startswith("+")


def test_zero_is_white_and_signs_have_their_colours():
    rows = ((0.0, 0.5, -0.5), (0.0, 0.5, -0.5))
    styles = [cell["style"] for cell in Reader(page(explanation(scores=rows))).of_class("cell")][:3]
    assert "--l:#ffffff" in styles[0]
    assert "--l:#b2182b" in styles[1]
    assert "--l:#2166ac" in styles[2]


@pytest.mark.parametrize("render", [page, fragment])
@pytest.mark.parametrize("field", ["prompt", "output", "model", "method", "removal", "version", "notes", "token", "of"])
def test_escapes_every_field(field, render):
    bad = "</script><img src=x onerror=alert(1)>\"'"
    if field == "token":
        e = explanation(contrast=bad, tokens=(token(bad, 10, 0.5, against=bad, against_probability=0.1),) * 2)
    else:
        e = explanation(**{field: {bad: bad} if field == "notes" else bad})
    reader = Reader(render(e))
    tags = [tag for tag, _ in reader.elements]
    assert "img" not in tags
    assert all("onerror" not in found for _, found in reader.elements)
    assert tags.count("script") == (2 if render is page else 0)


def test_page_asks_for_nothing_from_the_network():
    markup = page([explanation(), explanation(earlier=True, contrast=" wild")])
    assert not re.search(r"https?:|//[a-z]|@import|url\(|<link|<iframe|\bsrc=|fetch\(", markup)
    assert "default-src 'none'" in markup
    assert markup.count("<article") == 2
    assert "2 explained outputs" in markup


def test_fragment_styles_reach_only_into_it():
    style = re.sub(r"/\*.*?\*/", "", fragment(explanation()).split("</style>")[0].removeprefix("<style>"), flags=re.S)
    selectors = re.findall(r"([^{}]+)\{", re.sub(r"@media[^{]+\{", "", style))
    assert selectors
    assert all(".raison" in part for selector in selectors for part in selector.split(","))


def test_contrast_is_named():
    markup = page(explanation(contrast=" wild"))
    assert "for the other token" in markup
    assert "and not  wild" in markup
    assert "wild" in explanation_plain(explanation(contrast=" wild"))


def test_terminal_shows_tokens_with_their_strongest_units():
    shown = explanation_plain(explanation(notes={"border": "doubtful"}))
    assert "50.0 %" in shown
    assert re.search(r"calm .*sea \+0\.400  is -0\.200  the \+0\.100", shown)
    assert "doubtful" in shown
    assert "\x1b" not in explanation_plain(explanation(prompt="the \x1b[31m sea", output="\x1b[0m x"))
    assert str(explanation()) == explanation_plain(explanation())


def test_unsigned_scores_are_amounts_everywhere():
    rows = ((0.1, 0.4, 0.2), (0.0, 0.3, 0.05))
    e = explanation(scores=rows, signed=False, method="attention_rollout")
    assert GenerationExplanation.from_json(e.to_json()) == e
    assert not e.token(0).signed
    assert not e.whole().signed
    markup = re.sub(r"<style>.*?</style>", "", page(e), flags=re.DOTALL)
    assert "from 0.000 (no colour) to 0.400 (purple)" in markup
    assert "less important" in markup
    assert "against it" not in markup
    assert "#b2182b" not in markup
    states = json.loads(re.search(r'<script type="application/json">(.*?)</script>', markup)[1])
    assert len(states["palette"]) == 21
    assert states["states"]["0"]["shades"] == [5, 20, 10]
    shown = explanation_plain(e)
    assert "sea 0.400" in shown
    assert "+0" not in shown
    assert "stronger means more important" in shown


@pytest.mark.parametrize("signed", ["yes", False])
def test_a_sign_that_the_scores_do_not_have_is_refused(signed):
    with pytest.raises(DataError, match="signed"):
        GenerationExplanation.from_dict(explanation().to_dict() | {"signed": signed})


@pytest.mark.parametrize(
    "notes",
    [
        *({"completeness_gap": "x"}, {"extended": ["a"]}, {"extended": [9]}, {"selected_by": "x"}),
        *({"candidate_values": 5}, {"exact": [9]}, {"groups": ["a"]}, {"group_intervals": [[0.5]]}),
    ],
)
def test_notes_that_views_read_are_checked(notes):
    for data in (explanation().to_dict() | {"notes": notes}, explanation().to_dict()):
        data["tokens"] = [one | {"notes": notes} for one in data["tokens"]]
        with pytest.raises(DataError, match="the notes"):
            GenerationExplanation.from_dict(data)


def test_an_output_without_units_can_be_seen():
    e = GenerationExplanation.from_dict(explanation(True).to_dict() | {"units": [], "scores": [[], []]})
    assert e.token(1).text == PROMPT + " calm"
    assert page(e)
