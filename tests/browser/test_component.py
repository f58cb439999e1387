"""What a person does with the component: type, change a word, look again, compare, go back, send a link."""

from typing import Any
from urllib.parse import urlencode

import pytest

import raison
from raison.report.style import gaps
from raison.report.style.markup import minus
from raison.web.component.views import agreement, change
from tests.browser.conftest import Opened, models
from tests.browser.stage import TEXT, numbers

# An address without https has no clipboard.
CLIPBOARD = """() => Object.defineProperty(navigator, "clipboard", {
    value: { writeText: async (text) => { window.copied = text; } },
})"""


def of_words(text: str, **options: Any) -> raison.Explanation:
    return raison.explain(models()["words"], text, "occlusion", progress=False, **options)


def test_what_is_shown_is_the_librarys_explanation_after_that_of_a_quick_method(opened: Opened) -> None:
    stage = opened()
    assert stage.methods == ["deep_lift", "occlusion"]
    assert "with occlusion" in stage.page.locator("article .goal").inner_text()
    e = raison.explain(models()["tiny"], TEXT, "occlusion", progress=False)
    assert stage.words() == TEXT.split()
    expected = numbers(e)
    assert [label.partition(": ")[2] for label in stage.labels()] == expected


def test_below_the_map_stands_how_far_it_can_be_trusted(opened: Opened) -> None:
    stage = opened(values={"model_name": "words"})
    trust = stage.page.get_by_role("region", name="Trust")
    trust.get_by_role("button", name="Check this one").click()
    stage.page.get_by_text("Random control").wait_for()
    e = of_words(TEXT)
    assert minus(gaps.completeness(e, e.completeness_gap)) in trust.inner_text()
    assert "without “pleasure”" in trust.inner_text()


def test_the_map_follows_what_is_typed_and_the_focus_stays(opened: Opened) -> None:
    stage = opened(values={"model_name": "words"})
    area = stage.page.get_by_label("Text", exact=True)
    area.focus()
    area.press("End")
    # In one go: a pause between two letters would be a state of its own.
    stage.page.keyboard.insert_text(" dull")
    stage.page.wait_for_function("() => document.querySelectorAll('article:last-child .unit').length === 6")
    stage.settle()
    typed = f"{TEXT} dull"
    assert stage.words() == typed.split()
    assert [label.partition(": ")[2] for label in stage.labels(0)] == numbers(of_words(TEXT))
    assert change(of_words(TEXT), of_words(typed)) in stage.told()
    assert agreement(of_words(TEXT), of_words(typed)) in stage.told()
    assert area.evaluate("area => area === document.activeElement")


def test_only_the_last_of_many_changes_is_explained_to_the_end(opened: Opened) -> None:
    stage = opened()
    for word in ("one", "two", "three"):
        stage.page.evaluate("text => window.model.set('text', text)", f"{TEXT} {word}")
    stage.page.wait_for_function("() => document.querySelector('article:last-child')?.textContent.includes('three')")
    stage.settle()
    assert stage.words() == [*TEXT.split(), "three"]
    finished = [body["text"] for what, body in stage.asked if what == "explain" and body["method"] == "occlusion"]
    assert finished == [TEXT, f"{TEXT} three"]


def test_words_are_changed_by_keys_alone(opened: Opened) -> None:
    stage = opened(values={"model_name": "words"})
    first = stage.page.locator("article .unit").first
    first.focus()
    press = stage.page.keyboard.press
    press("ArrowRight")
    press("Delete")
    stage.page.wait_for_function("() => document.querySelectorAll('article').length === 2")
    stage.settle()
    assert stage.words() == ["a", "pleasure", "with", "ease"]
    assert stage.page.evaluate("() => document.activeElement.textContent") == "pleasure"
    press("Enter")
    stage.page.keyboard.type("dull")
    press("Enter")
    stage.page.wait_for_function("() => document.querySelector('article:last-child').textContent.includes('dull')")
    stage.settle()
    assert stage.words() == ["a", "dull", "with", "ease"]
    assert stage.words(0) == ["a", "pleasure", "with", "ease"]
    press("Control+z")
    press("Control+z")
    stage.page.wait_for_function("() => document.querySelectorAll('article').length === 1")
    stage.settle()
    assert stage.words() == TEXT.split()
    press("Control+Shift+Z")
    stage.page.wait_for_function("() => document.querySelectorAll('article').length === 2")
    assert stage.words() == ["a", "pleasure", "with", "ease"]
    assert len([what for what, _ in stage.asked if what == "explain"]) == 3


def test_words_are_changed_by_clicks(opened: Opened) -> None:
    stage = opened("a modest pleasure", {"model_name": "words"})
    for wish, expected in (
        ("Add before", "a very modest pleasure"),
        ("Add after", "a modest very pleasure"),
        ("Exchange", "a very pleasure"),
    ):
        stage.page.locator("article .unit").nth(1).click()
        stage.page.get_by_label("Word", exact=True).fill("very")
        stage.page.get_by_role("button", name=wish).click()
        stage.page.wait_for_function("() => document.querySelectorAll('article').length === 2")
        stage.settle()
        assert stage.words() == expected.split()
        assert stage.page.get_by_label("Text", exact=True).input_value() == expected
        stage.page.get_by_role("button", name="Undo").click()
        stage.page.wait_for_function("() => document.querySelectorAll('article').length === 1")
        stage.settle()


@pytest.mark.parametrize("text", ["so 👍🏽 👩‍👩‍👧 pleasure", "كان ممل جدا"], ids=["emoji", "right to left"])
def test_places_are_counted_as_python_counts_them(opened: Opened, text: str) -> None:
    stage = opened(text, {"model_name": "words"})
    words = stage.words()
    stage.page.locator("article .unit").nth(len(words) - 1).click()
    stage.page.get_by_role("button", name="Delete").click()
    stage.page.wait_for_function("() => document.querySelectorAll('article').length === 2")
    stage.settle()
    assert stage.page.get_by_label("Text", exact=True).input_value() == " ".join(text.split()[:-1])
    assert stage.words() == words[:-1]


def test_arrows_follow_the_direction_of_the_text(opened: Opened) -> None:
    stage = opened("كان ممل جدا", {"model_name": "words"})
    stage.page.locator("article .unit").first.focus()
    stage.page.keyboard.press("ArrowLeft")
    assert stage.page.evaluate("() => document.activeElement.textContent") == "ممل"


@pytest.mark.parametrize(
    ("sort", "field", "value", "options"),
    [
        ("another method", "Method", "shapley_exact", {"method": "shapley_exact"}),
        ("another target", "Why", "negative", {"target": "negative"}),
    ],
)
def test_two_maps_stand_on_one_scale_with_their_agreement(
    opened: Opened, sort: str, field: str, value: str, options: dict[str, str]
) -> None:
    stage = opened(values={"model_name": "words"})
    comparing = stage.page.get_by_role("form", name="Comparison")
    comparing.get_by_label("Beside it").select_option(label=sort)
    comparing.get_by_label(field, exact=True).select_option(value)
    stage.page.wait_for_function("() => document.querySelectorAll('article').length === 2")
    stage.settle()
    own, other = (
        of_words(TEXT),
        raison.explain(
            models()["words"], TEXT, options.get("method", "occlusion"), target=options.get("target"), progress=False
        ),
    )
    assert agreement(other, own) in stage.told()
    highest = stage.page.locator("article .legend .high").all_inner_texts()
    assert highest[0] == highest[1]


def test_two_models_and_two_texts_are_compared(opened: Opened) -> None:
    stage = opened(values={"model_name": "words"})
    comparing = stage.page.get_by_role("form", name="Comparison")
    comparing.get_by_label("Beside it").select_option(label="another model")
    stage.page.wait_for_function("() => document.querySelectorAll('article').length === 2")
    stage.settle()
    other = raison.explain(models()["tiny"], TEXT, "occlusion", progress=False)
    assert agreement(other, of_words(TEXT)) in stage.told()
    comparing.get_by_label("Beside it").select_option(label="another text")
    comparing.get_by_label("Other text").fill("a dull pleasure")
    stage.page.wait_for_function("() => document.querySelector('article').textContent.includes('dull')")
    stage.settle()
    assert agreement(of_words("a dull pleasure"), of_words(TEXT)) in stage.told()


def test_why_this_and_not_that(opened: Opened) -> None:
    stage = opened(values={"model_name": "words"})
    asking = stage.page.get_by_role("form", name="What is explained")
    asking.get_by_label("Why").select_option("negative")
    asking.get_by_label("and not").select_option("positive")
    stage.page.wait_for_function("() => document.body.textContent.includes('minus that of positive')")
    stage.settle()
    e = of_words(TEXT, target=("negative", "positive"))
    assert [label.partition(": ")[2] for label in stage.labels()] == numbers(e)


def test_a_link_holds_the_state(opened: Opened) -> None:
    stage = opened(values={"model_name": "words", "linked": True})
    stage.page.get_by_label("Text", exact=True).fill("a dull & <modest> film #1")
    asking = stage.page.get_by_role("form", name="What is explained")
    asking.get_by_label("Why").select_option("negative")
    comparing = stage.page.get_by_role("form", name="Comparison")
    comparing.get_by_label("Beside it").select_option(label="another method")
    comparing.get_by_label("Method", exact=True).select_option("shapley_exact")
    stage.page.wait_for_function("() => location.hash.includes('shapley_exact') && location.hash.includes('negative')")
    stage.settle()
    stage.page.evaluate(CLIPBOARD)
    stage.page.get_by_text("Take away").click()
    stage.page.get_by_role("button", name="Copy link").click()
    assert stage.page.evaluate("() => window.copied") == stage.page.url
    again = opened("something else", {"linked": True}, hash="#" + stage.page.url.partition("#")[2])
    assert again.words() == stage.words()
    assert again.labels() == stage.labels()
    assert again.labels(0) == stage.labels(0)
    assert again.told() == stage.told()


def test_what_a_link_does_not_name_is_as_the_page_began(opened: Opened) -> None:
    stage = opened(values={"model_name": "words", "linked": True})
    stage.page.wait_for_function("() => location.hash.includes('text=')")
    link = stage.page.url.partition("#")[2]
    asking = stage.page.get_by_role("form", name="What is explained")
    asking.get_by_label("Why").select_option("negative")
    asking.get_by_label("Quantity").select_option("log_odds")
    stage.page.wait_for_function("() => location.hash.includes('log_odds')")
    stage.settle()
    stage.page.evaluate("(hash) => { location.hash = hash; }", link)
    stage.page.wait_for_function("() => !location.hash.includes('log_odds')")
    stage.settle()
    assert [label.partition(": ")[2] for label in stage.labels()] == numbers(of_words(TEXT))


def test_removal_and_seed_of_a_link_are_explained_and_kept(opened: Opened) -> None:
    method = "kernel_shap(samples=8)"
    link = urlencode({"model": "tiny", "method": method, "text": TEXT, "removal": "pad", "seed": 3})
    stage = opened(values={"linked": True}, hash=f"#{link}")
    e = raison.explain(models()["tiny"], TEXT, method, removal="pad", seed=3, progress=False)
    assert [label.partition(": ")[2] for label in stage.labels()] == numbers(e)
    assert "removal=pad&seed=3" in stage.page.url
    stage.page.get_by_text("Take away").click()
    assert 'removal="pad", seed=3' in stage.page.get_by_role("region", name="Code").inner_text()
    asking = stage.page.get_by_role("form", name="What is explained")
    asking.get_by_label("Seed").select_option("0")
    asking.get_by_label("Removal").select_option("by default")
    stage.page.wait_for_function("() => !location.hash.includes('seed') && !location.hash.includes('removal')")
    stage.settle()
    e = raison.explain(models()["tiny"], TEXT, method, progress=False)
    assert [label.partition(": ")[2] for label in stage.labels()] == numbers(e)


def test_undo_leads_back_from_what_was_refused(opened: Opened) -> None:
    stage = opened()
    area = stage.page.get_by_label("Text", exact=True)
    area.fill("dull film")
    stage.page.wait_for_function("() => document.querySelectorAll('article:last-child .unit').length === 2")
    stage.settle()
    area.fill("long " * 200)
    stage.page.locator(".place-status .warning").wait_for()
    stage.page.get_by_role("button", name="Undo").click()
    stage.page.wait_for_function("() => document.querySelectorAll('article:last-child .unit').length === 2")
    stage.settle()
    assert stage.words() == ["dull", "film"]


def test_a_refused_comparison_leaves_the_own_map(opened: Opened) -> None:
    stage = opened(values={"model_name": "words"})
    comparing = stage.page.get_by_role("form", name="Comparison")
    comparing.get_by_label("Beside it").select_option(label="another text")
    comparing.get_by_label("Other text").fill(" ")
    warning = stage.page.locator(".place-status .warning")
    warning.wait_for()
    assert warning.inner_text().startswith("Beside it ( ): ")
    assert stage.words() == TEXT.split()
    assert stage.page.get_by_text("Take away").count() == 1


def test_an_error_is_one_line_and_leaves_no_old_map(opened: Opened) -> None:
    stage = opened()
    area = stage.page.get_by_label("Text", exact=True)
    area.fill("long " * 200)
    warning = stage.page.locator(".place-status .warning")
    warning.wait_for()
    with pytest.raises(raison.RaisonError) as refused:
        raison.explain(models()["tiny"], "long " * 200, progress=False)
    assert warning.inner_text() == f"{refused.value} Explain what fits"
    assert stage.page.locator("article").count() == 0
    area.fill("dull")
    stage.page.locator("article").first.wait_for()
    stage.settle()
    assert stage.words() == ["dull"]
    assert warning.count() == 0


def test_the_beginning_of_a_text_that_is_too_long_is_explained(opened: Opened) -> None:
    stage = opened("long " * 200)
    stage.page.get_by_role("button", name="Explain what fits").click()
    stage.page.locator("article").first.wait_for()
    stage.settle()
    e = raison.explain(models()["tiny"], "long " * 200, "occlusion", truncate=True, progress=False)
    assert [label.partition(": ")[2] for label in stage.labels()] == numbers(e)
    assert len(stage.words()) == len(e.units) < 200
    assert "cut off" in stage.told() + stage.page.get_by_role("region", name="Trust").inner_text()
    stage.page.get_by_label("Long texts").select_option("are refused")
    stage.page.get_by_role("button", name="Explain what fits").wait_for()
    assert stage.page.locator("article").count() == 0
    assert stage.page.get_by_label("Long texts").count() == 0


def test_a_model_without_a_quick_method_is_asked_once_and_without_a_text_not_again(opened: Opened) -> None:
    stage = opened(values={"model_name": "words"})
    assert stage.methods == ["occlusion"]
    count = len(stage.asked)
    stage.page.get_by_label("Text", exact=True).fill("   ")
    stage.page.get_by_text("Type or paste a text.").wait_for()
    assert stage.page.locator("article").count() == 0
    assert len(stage.asked) == count


def test_nothing_in_a_text_is_markup(opened: Opened) -> None:
    text = "<img src=x onerror=window.ran=1> </div><script>window.ran=1</script> \"&amp;'"
    stage = opened(text, {"model_name": "words"})
    assert "".join(stage.page.locator("article .text").all_text_contents()) == text
    assert stage.page.evaluate("() => window.ran") is None
    assert stage.page.locator("img").count() == 0


def test_a_pair_has_two_texts(opened: Opened) -> None:
    stage = opened(["a man plays", "a man sleeps"])
    stage.page.get_by_label("Text 2").fill("nobody sleeps")
    stage.page.wait_for_function("() => document.querySelectorAll('article').length === 2")
    stage.settle()
    assert stage.words() == "a man plays nobody sleeps".split()


def test_what_leaves_is_gone(opened: Opened) -> None:
    stage = opened(values={"model_name": "words"})
    stage.page.evaluate("() => window.leave()")
    assert stage.page.locator(".raison-component").count() == 0
    count = len(stage.asked)
    stage.page.evaluate("() => window.model.set('text', 'more')")
    stage.page.wait_for_timeout(200)
    assert len(stage.asked) == count
