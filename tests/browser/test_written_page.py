"""What a language model writes, on the served page: its answer token by token, spans of it, chats, contrasts."""

from typing import Any
from urllib.parse import urlencode

import raison
from raison.core.results.generation import GenerationExplanation
from raison.report.explanations.html import page as static_page
from raison.report.explanations.output_layout import output_layout, span_state, states
from raison.web.component.views import agreement
from tests.browser.conftest import Opened, ServedPage
from tests.browser.stage import numbers
from tests.browser.test_look import TOLD, assert_painted_alike, fits
from tests.browser.written import becomes, writer

PROMPT = "the sea is good"
CHAT = [{"role": "system", "content": "a dull plot"}, {"role": "user", "content": PROMPT}]
PAINT = """() => [...document.querySelectorAll("article.generation .unit")].map((unit) => {
    const { backgroundColor, color } = getComputedStyle(unit);
    return [unit.textContent, unit.ariaLabel, backgroundColor, color];
})"""
SAID = TOLD.replace("article .goal", "article .shown")
LABELS = (
    """() => [...document.querySelectorAll('article.generation:last-of-type .unit')].map((unit) => unit.ariaLabel)"""
)
BEFORE = LABELS.replace("last-of-type", "first-of-type")
MATRIX = "() => [...document.querySelectorAll('.matrix td.cell')].map((cell) => [cell.title, cell.textContent])"

EXPLAINED: dict[str, GenerationExplanation] = {}
"""By what was asked."""


def explained(text: Any = PROMPT, **options: Any) -> GenerationExplanation:
    asked: Any = {"max_new_tokens": 4} | options
    key = repr((text, asked))
    if key not in EXPLAINED:
        found: Any = raison.explain(writer(), text, "occlusion", progress=False, **asked)
        EXPLAINED[key] = found
    return EXPLAINED[key]


def written(e: GenerationExplanation) -> str:
    """The address that asks for it."""
    return f"#face=write&method=occlusion&tokens=4&text={e.prompt.replace(' ', '+')}"


def labels(e: GenerationExplanation, values: tuple[str, ...]) -> list[str]:
    return [f"{unit.text.strip()}: {value}" for unit, value in zip(e.units, values, strict=True)]


def fill_in(page: Any) -> None:
    """The form as `explained` asks."""
    page.get_by_label("Prompt").fill(PROMPT)
    page.get_by_label("Method").select_option("occlusion")
    page.get_by_label("Tokens at most").fill("4")


def test_a_prompt_is_answered_and_each_token_has_its_map(served: ServedPage) -> None:
    page = served()
    page.get_by_role("link", name="Written answers").click()
    fill_in(page)
    page.get_by_role("button", name="Explain").click()
    e = explained()
    known = states(output_layout(e))
    becomes(page, LABELS, labels(e, known["all"].values))
    tokens = page.locator(".output button")
    assert tokens.count() == len(e.tokens) + 1
    tokens.nth(2).hover()
    becomes(page, LABELS, labels(e, known["1"].values))
    assert page.locator(".shown").text_content() == known["1"].heading
    tokens.nth(0).focus()
    page.mouse.move(0, 0)
    page.keyboard.press("ArrowRight")
    becomes(page, LABELS, labels(e, known["0"].values))
    # The link holds what was asked.
    page.goto(page.url)
    page.reload()
    becomes(page, LABELS, labels(e, known["all"].values))


def test_in_a_notebook_settings_go_both_ways(opened: Opened) -> None:
    limits = {"limits": {"new_tokens": 9}, "max_new_tokens": 4, "output": ""}
    page = opened(PROMPT, {"face": "write", **limits}).page
    e = explained()
    becomes(page, LABELS, labels(e, states(output_layout(e))["all"].values))
    page.evaluate("() => window.model.set('text', 'a dull plot')")
    changed = explained("a dull plot")
    becomes(page, LABELS, labels(changed, states(output_layout(changed))["all"].values))
    page.get_by_label("Answer, if not").fill(" a plot")
    page.get_by_role("button", name="Explain").click()
    given = explained("a dull plot", output=" a plot", max_new_tokens=None)
    becomes(page, LABELS, labels(given, states(output_layout(given))["all"].values))
    assert page.evaluate("() => window.model.get('output')") == " a plot"


def test_old_and_new_stand_side_by_side_and_undo_goes_back(served: ServedPage) -> None:
    old, new = explained(), explained("the plot is dull")
    of_old, of_new = (labels(e, states(output_layout(e))["all"].values) for e in (old, new))
    page = served(written(old))
    becomes(page, LABELS, of_old)
    page.get_by_label("Prompt").fill("the plot is dull")
    page.get_by_role("button", name="Explain").click()
    becomes(page, LABELS, of_new)
    becomes(page, BEFORE, of_old)
    assert agreement(old.whole(), new.whole()) in " ".join(page.locator(".place-maps > .told").all_inner_texts())
    # Each answer follows its own tokens.
    page.get_by_role("article", name="Before").locator(".output button").nth(2).hover()
    becomes(page, BEFORE, labels(old, states(output_layout(old))["1"].values))
    becomes(page, LABELS, of_new)
    page.get_by_role("button", name="Undo").press("Enter")
    becomes(page, LABELS, of_old)
    assert page.locator("article").count() == 1
    assert page.get_by_label("Prompt").input_value() == PROMPT
    page.keyboard.press("Control+Shift+Z")
    becomes(page, LABELS, of_new)
    page.get_by_role("form", name="Comparison").get_by_label("Beside it").select_option(label="another method")
    page.get_by_role("form", name="Comparison").get_by_label("Method").select_option("shapley_exact")
    other: Any = raison.explain(writer(), "the plot is dull", "shapley_exact", max_new_tokens=4, progress=False)
    becomes(page, BEFORE, labels(other, states(output_layout(other))["all"].values))
    # The link holds the comparison.
    page.reload()
    becomes(page, BEFORE, labels(other, states(output_layout(other))["all"].values))
    becomes(page, LABELS, of_new)


def test_it_is_painted_as_on_its_page_of_its_own(served: ServedPage) -> None:
    e = explained()
    page = served(written(e))
    becomes(page, LABELS, labels(e, states(output_layout(e))["all"].values))
    other = page.context.new_page()
    other.set_content(static_page(e))
    assert_painted_alike(page, other, PAINT)
    assert page.evaluate(MATRIX) == other.evaluate(MATRIX)
    shown, own = (one.locator(SAID).all_text_contents() for one in (page, other))
    assert shown == own


def test_a_span_is_reached_by_keys_and_by_clicks(served: ServedPage) -> None:
    e = explained()
    shown = output_layout(e)
    page = served(written(e))
    tokens = page.locator(".output button")
    tokens.nth(2).focus()
    page.keyboard.press("Shift+ArrowRight")
    becomes(page, LABELS, labels(e, span_state(shown, 1, 2).values))
    page.keyboard.press("Shift+ArrowRight")
    becomes(page, LABELS, labels(e, span_state(shown, 1, 3).values))
    assert page.locator('.output [aria-pressed="true"]').count() == 3
    tokens.nth(3).click()
    tokens.nth(1).click(modifiers=["Shift"])
    page.mouse.move(0, 0)
    becomes(page, LABELS, labels(e, span_state(shown, 0, 2).values))
    assert page.locator(".shown").text_content() == span_state(shown, 0, 2).heading


def test_why_this_token_and_not_that(served: ServedPage) -> None:
    e = explained()
    page = served(written(e))
    page.locator(".output button").nth(2).press("Enter")
    page.get_by_role("form", name="Why this and not that").get_by_role("textbox").fill("sea")
    page.keyboard.press("Enter")
    page.locator(".contrast article").wait_for()
    start = len(e.prompt)
    answer = e.output[: e.tokens[1].end - start]
    against: Any = [0 if e.tokens[0].id else 1, "sea"]
    expected = explained(max_new_tokens=None, output=answer, contrast=against).token(1)
    said = page.locator(".contrast .unit").evaluate_all("all => all.map((one) => one.ariaLabel)")
    assert [label.partition(": ")[2] for label in said] == numbers(expected)
    assert "sea" in page.locator(".contrast .goal").inner_text()


def test_removal_and_seed_of_a_link_are_those_of_the_answer(served: ServedPage) -> None:
    method = "lime(samples=6)"
    e: Any = raison.explain(writer(), PROMPT, method, removal="unk", seed=3, max_new_tokens=2, progress=False)
    link = {"face": "write", "method": method, "tokens": 2, "removal": "unk", "seed": 3, "text": PROMPT}
    page = served("#" + urlencode(link))
    becomes(page, LABELS, labels(e, states(output_layout(e))["all"].values))
    assert "removal=unk&seed=3" in page.url
    page.get_by_text("Take away").click()
    assert 'removal="unk", seed=3' in page.get_by_role("region", name="Code").inner_text()
    page.reload()
    becomes(page, LABELS, labels(e, states(output_layout(e))["all"].values))


def test_messages_are_units_with_roles(served: ServedPage) -> None:
    page = served("#face=write")
    page.get_by_label("Prompt").fill("a dull plot")
    page.get_by_role("button", name="Make it a chat").click()
    page.get_by_role("button", name="Add a message").click()
    for place, message in enumerate(CHAT):
        page.get_by_label("Role").nth(place).select_option(message["role"])
        page.get_by_label("Message", exact=True).nth(place).fill(message["content"])
    page.get_by_label("Units").select_option(label="messages")
    page.get_by_label("Method").select_option("occlusion")
    page.get_by_label("Tokens at most").fill("2")
    page.get_by_role("button", name="Explain").click()
    e = explained(CHAT, unit="part", max_new_tokens=2)
    becomes(page, LABELS, labels(e, states(output_layout(e))["all"].values))
    roles = page.locator("article .unit").evaluate_all("all => all.map((one) => one.dataset.name)")
    assert roles == ["system", "user"]
    assert all(label.split(": ")[1] == role for label, role in zip(page.evaluate(LABELS), roles, strict=True))


def test_what_is_refused_is_one_line_and_leaves_no_old_map(served: ServedPage) -> None:
    page = served(written(explained()))
    page.locator("article").first.wait_for()
    page.get_by_label("Answer, if not").fill("  ")
    page.get_by_label("Prompt").fill("long " * 600)
    page.get_by_role("button", name="Explain").click()
    page.locator(".place-status .warning").wait_for()
    assert page.locator("article").count() == 0
    assert page.locator(".place-status .warning").inner_text().count("\n") == 0


def test_writing_is_stopped(served: ServedPage) -> None:
    page = served("#face=write")
    # An answer that never comes.
    page.route("**/api/predict", lambda route: None)
    page.get_by_label("Prompt").fill("the film is")
    page.get_by_role("button", name="Explain").click()
    with page.expect_event("requestfailed") as aborted:
        page.get_by_role("button", name="Stop").press("Enter")
    assert aborted.value.url.endswith("/api/predict")
    page.locator(".place-status .warning", has_text="Stopped.").wait_for()
    page.unroute("**/api/predict")
    page.get_by_role("button", name="Explain").click()
    page.locator("article.generation").wait_for()
    assert page.locator(".place-status").inner_text() == ""


def test_axe_finds_no_violation_and_nothing_is_cut_off(served: ServedPage) -> None:
    page = served(written(explained()))
    page.locator("article").first.wait_for()
    page.get_by_label("Prompt").fill("the plot is dull")
    page.get_by_role("button", name="Explain").click()
    page.locator("article").nth(1).wait_for()
    page.get_by_role("button", name="Make it a chat").click()
    page.evaluate("() => document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    page.locator("article").last.locator(".output button").nth(2).press("Enter")
    fits(page)


def test_what_a_link_names_wrongly_can_be_chosen_otherwise(served: ServedPage) -> None:
    page = served("#face=write&model=nope&method=occlusion&tokens=4&text=the+sea")
    page.get_by_text("The link names the model 'nope'").wait_for()
    fill_in(page)
    page.get_by_role("button", name="Explain").click()
    becomes(page, LABELS, labels(explained(), states(output_layout(explained()))["all"].values))
    assert "nope" not in page.url


def test_the_address_is_that_of_what_is_seen(served: ServedPage) -> None:
    page = served()
    page.get_by_role("link", name="Written answers").click()
    fill_in(page)
    held: list[Any] = []
    page.route("**/api/predict", lambda route: held.append(route))
    page.get_by_role("button", name="Explain").click()
    page.get_by_text("The model writes.").wait_for()
    page.get_by_label("Prompt").fill("something else")
    held[0].continue_()
    becomes(page, LABELS, labels(explained(), states(output_layout(explained()))["all"].values))
    assert "something" not in page.url
