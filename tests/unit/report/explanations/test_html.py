"""The page and the fragment: whole text, nothing executable from it, no network, readable without a mouse."""

import json
import math
import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest

from raison.core.inputs.unit import Text, Unit, segments
from raison.core.results.explanation import Explanation
from raison.report.explanations.html import beside, fragment, page
from tests.explained import of_words

REVIEW = "a modest pleasure that accomplishes its goals with ease and confidence ."
TEXTS: dict[str, Text] = {
    "plain": REVIEW,
    "markup": "<script>alert('x')</script> & \"quoted\" <!-- c --> </div></article> &amp; &lt;",
    "lines": "\n first line\n\n  second\tline  \r\nthird\rfourth \n",
    "emoji": "👩‍👩‍👧 good 🎬👍🏽 film",
    "right to left": "كان الفيلم رائعًا جدًا، لكن النهاية كانت مملة.",
    "pair": ("A man plays <b>guitar</b>.", "Nobody makes 'music'."),
    "empty": "",
}


def explain(text: Text, scores: tuple[float, ...] | None = None, **changes: Any) -> Explanation:
    plain = of_words(text, scores)
    values: dict[str, Any] = {
        "scores": scores or tuple((-1) ** number * 0.1 * (number + 1) for number in range(len(plain.units))),
        "probabilities": (0.03, 0.97),
        "value_full": 0.97,
        "config": {"window": 1},
        "seed": 7,
        "version": "0.1.0",
    }
    return replace(plain, **(values | changes))


class Reader(HTMLParser):
    """The text of each `text` block, and every element with its attributes."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.blocks: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self._inside = False
        # A page has its elements' styles in its sheet, by number.
        self._styles = dict(re.findall(r'html (?:\[data-style="(\d+)"\]){4} \{(.*?)\}', markup))
        self.feed(markup)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        if "data-style" in attributes:
            attributes["style"] = self._styles[attributes.pop("data-style")]
        self.elements.append((tag, attributes))
        if tag == "div" and (attributes.get("class") or "").startswith("text"):
            self._inside = True
            self.blocks.append("")

    def handle_endtag(self, tag: str) -> None:
        if tag == "div":
            self._inside = False

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.blocks[-1] += data

    def units(self) -> list[dict[str, str | None]]:
        return [attributes for _, attributes in self.elements if (attributes.get("class") or "").startswith("unit")]


@pytest.mark.parametrize("render", [page, fragment])
@pytest.mark.parametrize("name", TEXTS)
def test_shows_the_text_and_nothing_but_the_text(name: str, render: Any) -> None:
    assert Reader(render(explain(TEXTS[name]))).blocks == list(segments(TEXTS[name]))


@pytest.mark.parametrize("render", [page, fragment])
@pytest.mark.parametrize(
    "field", ["text", "target", "model", "method", "removal", "version", "classes", "config", "notes"]
)
def test_escapes_every_field(field: str, render: Any) -> None:
    bad = "<img src=x onerror=alert(1)>\"'"
    value: Any = {"classes": (bad, bad + "2"), "config": {bad: bad}, "notes": {bad: bad}}.get(field, bad)
    markup = render(explain(bad)) if field == "text" else render(explain("a b", **{field: value}))
    tags = [tag for tag, _ in Reader(markup).elements]
    assert "img" not in tags
    assert all("onerror" not in attributes for _, attributes in Reader(markup).elements)
    assert tags.count("script") == (1 if render is page else 0)


@pytest.mark.parametrize("render", [page, fragment])
def test_asks_for_nothing_from_the_network(render: Any) -> None:
    markup = render(explain(REVIEW))
    assert not re.search(r"https?:|//[a-z]|@import|url\(|<link|<iframe|\bsrc=|fetch\(", markup)


def test_page_forbids_itself_any_request() -> None:
    policy = next(a["content"] for t, a in Reader(page(explain("a"))).elements if t == "meta" and "http-equiv" in a)
    assert "default-src 'none'" in str(policy)


def test_every_unit_is_focusable_and_says_its_value() -> None:
    e = explain(REVIEW)
    units = Reader(page(e)).units()
    assert len(units) == len(e.units)
    for number, attributes in enumerate(units):
        value = f"{e.scores[number]:+.2f}".replace("-", "\N{MINUS SIGN}")
        assert attributes["tabindex"] == "0"
        assert value in str(attributes["title"])
        assert str(attributes["aria-label"]).startswith(f"{e.units[number].text}: {value}")


def test_zero_is_white_and_the_largest_scores_are_the_ends() -> None:
    styles = [str(unit["style"]) for unit in Reader(page(explain("a b c", (0.0, 2.0, -2.0)))).units()]
    assert "--l:#ffffff" in styles[0]
    assert "--l:#b2182b" in styles[1]
    assert "--l:#2166ac" in styles[2]


def test_characters_between_units_have_no_score() -> None:
    e = explain("one,  two", (0.5,), units=(Unit(0, 3, "one"),))
    markup = page(e)
    assert Reader(markup).blocks == ["one,  two"]
    assert len(Reader(markup).units()) == 1


def test_units_that_share_characters_are_shown_once_with_their_sum() -> None:
    shared = (Unit(0, 1, "🎬"), Unit(0, 1, "🎬"), Unit(1, 3, " ok"))
    reader = Reader(page(explain("🎬 ok", (0.25, 0.5, -0.75), unit="token", units=shared)))
    assert reader.blocks == ["🎬 ok"]
    assert [unit["data-units"] for unit in reader.units()] == ["0 1", "2"]
    assert "+0.750 (2 tokens together)" in str(reader.units()[0]["title"])


def test_score_that_is_not_a_number_is_shown_as_such() -> None:
    units = Reader(page(explain("a b", (math.nan, 0.5)))).units()
    assert str(units[0]["title"]).startswith("n/a")
    assert units[0]["class"] == "unit none"
    assert "style" not in units[0]


def test_legend_says_what_red_and_blue_mean() -> None:
    assert "against positive" in page(explain("a b"))
    paired = page(explain("a b", against="negative", of="margin"))
    assert "for negative" in paired
    assert "margin of positive over negative" in paired


def test_strongest_units_come_first() -> None:
    markup = page(explain("a b c", (0.1, -0.9, 0.4)))
    rows = re.findall(r'<tr data-unit="(\d)">', markup)
    assert rows == ["1", "2", "0"]


def test_provenance_is_on_the_page() -> None:
    markup = page(explain("a b", notes={"completeness_gap": 0.01, "layers": [1, 2]}, truncated=3, gradients=4))
    for wanted in ("demo/sst2", "window=1", "12 evaluations, 4 gradients", "raison 0.1.0", "mask", "layers", "[1, 2]"):
        assert wanted in markup
    assert "+0.01 between the sum" in markup
    assert "3 tokens were cut off" in markup


def test_several_explanations_are_listed() -> None:
    markup = page([explain("first one"), explain("second one")])
    assert Reader(markup).blocks == ["first one", "second one"]
    assert 'href="#explanation-2"' in markup
    assert 'id="explanation-2"' in markup


def test_fragment_styles_reach_only_into_it() -> None:
    style = re.sub(r"/\*.*?\*/", "", fragment(explain("a")).split("</style>")[0].removeprefix("<style>"), flags=re.S)
    selectors = re.findall(r"([^{}]+)\{", re.sub(r"@media[^{]+\{", "", style))
    assert selectors
    assert all(".raison" in part for selector in selectors for part in selector.split(","))


def test_direction_of_writing_follows_the_text() -> None:
    blocks = [a for t, a in Reader(page(explain(TEXTS["right to left"]))).elements if t == "div" and "dir" in a]
    assert [block["dir"] for block in blocks] == ["auto"]


def test_nul_and_lone_surrogates_can_be_written() -> None:
    markup = page(explain("a\x00b \ud800"))
    assert Reader(markup).blocks == ["a\ufffdb \ufffd"]
    markup.encode("utf-8")


@pytest.mark.parametrize("render", [page, fragment])
def test_unsigned_scores_are_amounts(render: Any) -> None:
    """Attention is never against anything: no sign, no side, a hue of its own, its own words."""
    markup = render(explain("so very good", (0.1, 0.0, 0.4), signed=False, method="attention_rollout"))
    units = Reader(markup).units()
    assert [str(unit["title"]).split(",")[0] for unit in units] == ["0.100", "0.000", "0.400"]
    assert "--l:#6a1b7d" in str(units[2]["style"])
    shown = re.sub(r"<style>.*?</style>|<script>.*?</script>", "", markup, flags=re.DOTALL)
    assert "less important" in shown
    assert "more important" in shown
    assert "against" not in shown
    assert "for positive" not in shown
    assert "+0" not in shown
    bars = [attributes for _, attributes in Reader(markup).elements if attributes.get("class") == "bar amount"]
    assert str(bars[0]["style"]).startswith("width:100.0%")


def test_a_page_of_labels_never_says_predicted_below_one_half() -> None:
    labels = {"classes": ("toxic", "insult", "threat"), "outputs": "labels", "target": "threat"}
    none = page(explain("so good", **labels, probabilities=(0.021, 0.02, 0.022)))
    assert '<p class="verdict">Labels <b><bdi>no label reaches 50 %</bdi></b> (highest: threat 2.2 %)</p>' in none
    assert "probability of threat (2.2 %)" in none
    assert "redicted" not in none
    assert "<title>no label reaches 50 % (highest: threat 2.2 %): so good</title>" in none
    some = page(explain("so bad", **labels, probabilities=(0.61, 0.93, 0.022)))
    assert '<p class="verdict">Labels <b><bdi>insult 93.0 %, toxic 61.0 %</bdi></b> </p>' in some


def test_a_page_of_a_number_says_a_score() -> None:
    e = explain("so good", (0.1, 4.0), classes=("reward",), outputs="number", probabilities=(), of="logit",
                target="reward", value_full=19.62, value_empty=-3.5)  # fmt: skip
    markup = page([e, e])
    assert '<p class="verdict">Score <b><bdi>19.6</bdi></b> (reward)</p>' in markup
    assert 'data-said="score" data-value="19.62">19.6</td>' in markup
    assert "raises the score" in markup
    assert "Probabilities" not in markup
    assert "redicted" not in markup


def test_units_that_the_model_cannot_read_are_marked() -> None:
    e = explain("so 好 film", (0.1, 0.4, 0.2), notes={"unknown_tokens": {"share": 0.6, "units": [1]}})
    markup = page(e)
    units = Reader(markup).units()
    assert [str(unit["class"]) for unit in units] == ["unit", "unit unread", "unit"]
    assert str(units[1]["title"]).endswith("rank 1 of 3, unknown to the model")
    assert "Warning: the model can hardly read this text: 60 % of the tokens are not in its vocabulary" in markup
    assert "unknown to the model: 60.0 % of the tokens, in 1 word" in markup
    assert "Note: unknown_tokens" not in markup


@pytest.mark.parametrize(
    "said",
    ["much", {"share": math.nan, "units": [1]}, {"share": "0.6", "units": [1]}, {"share": 0.6, "units": ["<b>"]}, {}],
)
def test_foreign_notes_of_unknown_tokens_are_left_alone(said: object) -> None:
    assert 'unread"' not in page(explain("so good", notes={"unknown_tokens": said})).partition("</style>")[2]


def test_two_explanations_of_one_text_say_how_far_they_agree() -> None:
    first, second = (
        of_words("a dull long film", (0.1, -0.5, 0.2, 0.4)),
        of_words("a dull long film", (0.2, -0.4, 0.5, 0.3)),
    )
    said = "Agreement: rank correlation of the scores +0.80, over 4 words."
    targets = [first, replace(second, target="negative")]
    for shown in ([first, replace(second, method="saliency")], targets):
        assert said in page(shown)
        assert said in beside(shown)
    of_others = [first, replace(of_words("another text it is", (1, 2, 3, 4)), method="saliency")]
    assert "Agreement" not in page(of_others)
    assert "Agreement" not in beside(of_others)


def test_of_more_than_two_the_page_says_it_of_those_that_are_ticked() -> None:
    one, other = of_words("a dull long film", (0.1, -0.5, 0.2, 0.4)), of_words("a fine long film", (0.2, 0.4, 0.5, 0.3))
    text = page([one, other, replace(one, method="saliency")])
    held = re.search(r'<script type="application/json">(.*?)</script>', text)
    assert held is not None
    assert json.loads(held[1])["alike"] == {"0 2": "Agreement: rank correlation of the scores +1.00, over 4 words"}
    assert 'class="goal agreement"' not in text
