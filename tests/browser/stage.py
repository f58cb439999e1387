"""The component on a page of its own, with a model as anywidget gives it, and models of this process that answer."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from raison.core.errors import RaisonError
from raison.core.results.explanation import Explanation
from raison.judging.map_checks import checked
from raison.models.adapters.writing.writer import Writer
from raison.web.component.explain_request import ExplainRequest, explained, read_explanations
from raison.web.component.messages import truncatable
from raison.web.component.model_facts import facts_of
from raison.web.component.sources import module, style
from raison.web.component.trust_facts import trusted
from raison.web.component.views import seen
from raison.web.component.writing_request import answered

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route

Answer = Callable[[dict[str, Any]], dict[str, Any]]
TEXT = "a modest pleasure with ease"
ADDRESS = "http://raison.test/"
POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src data: blob:; base-uri 'none'"
PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>raison</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="stylesheet" href="/style.css"></head>
<body><main id="here"><h1>Explain a text</h1></main><script type="module" src="/stage.js"></script></body></html>
"""
# What a page of its own adds, in place of a notebook's.
GROUND = "html { color-scheme: light dark; } .raison { color-scheme: light dark; }"
FILES = {
    "/": ("text/html", PAGE),
    "/stage.js": ("text/javascript", Path(__file__).with_name("stage.js").read_text("utf-8")),
    "/component.js": ("text/javascript", module()),
    "/style.css": ("text/css", style() + GROUND),
}


@dataclass
class Stage:
    """The page, and what it asked so far."""

    page: "Page"
    models: Mapping[str, Any]
    asked: list[tuple[str, Any]] = field(default_factory=list)

    def answer(self, message: dict[str, Any]) -> dict[str, Any]:
        """What the page is told."""
        self.asked.append((message["ask"], message["body"]))
        try:
            if any(isinstance(model, Writer) for model in self.models.values()):
                return {"id": message["id"], "answer": answered(self.models, message["ask"], message["body"])}
            if message["ask"] == "explain":
                return {
                    "id": message["id"],
                    "answer": explained(self.models, ExplainRequest.read(message["body"])).to_dict(),
                }
            if message["ask"] == "view/trust":
                [e] = read_explanations({"explanations": [message["body"]["explanation"]]})
                return {"id": message["id"], "answer": trusted(e, (), None)}
            if message["ask"] == "check":
                request = ExplainRequest.read(message["body"])
                found = asdict(checked(self.models[request.model], explained(self.models, request)))
                return {"id": message["id"], "answer": found}
            return {"id": message["id"], "answer": seen(read_explanations(message["body"]))}
        except RaisonError as error:
            return {"id": message["id"], "error": str(error), "truncatable": truncatable(error)}

    @property
    def methods(self) -> list[str]:
        """The methods that were asked for, in order."""
        return [body["method"] for what, body in self.asked if what == "explain"]

    def settle(self) -> None:
        """Wait until nothing is on its way."""
        self.page.wait_for_function(
            "() => { const maps = document.querySelector('.place-maps');"
            " return maps && !maps.hasAttribute('aria-busy'); }"
        )

    def words(self, article: int = -1) -> list[str]:
        """The units of an article, the last one by default."""
        return self.page.locator(".place-maps article").nth(article).locator(".unit").all_inner_texts()

    def labels(self, article: int = -1) -> list[str]:
        """What is said of the units of an article."""
        units = self.page.locator(".place-maps article").nth(article).locator(".unit")
        return [str(label) for label in units.evaluate_all("all => all.map((one) => one.ariaLabel)")]

    def told(self) -> str:
        """What stands below the maps."""
        return " ".join(self.page.locator(".place-maps > .told").all_inner_texts())


PLACED: "WeakKeyDictionary[Page, tuple[Mapping[str, Any], Answer]]" = WeakKeyDictionary()
"""What a page is told at the beginning, and what answers it: a function is exposed to a page once."""


@cache
def known_facts(name: str, model: Any) -> dict[str, Any]:
    """Of a model that several tests show."""
    return facts_of(name, model).to_dict()


def open_stage(page: "Page", models: Mapping[str, Any], values: Mapping[str, Any], place_named: str = "") -> Stage:
    """The component with these values of its traits on an empty page, whose address ends in the place that is named."""
    stage = Stage(page, models)
    facts = [known_facts(name, model) for name, model in models.items()]
    settings = {"model_name": next(iter(models)), "method": "occlusion", "unit": "word", "seed": 0, "truncate": False}
    place(page, {"models": facts, **settings, **values}, stage.answer)
    page.goto(ADDRESS + place_named)
    stage.page.locator(".place-maps article, .warning").first.wait_for()
    stage.settle()
    return stage


def place(page: "Page", initial: Mapping[str, Any], answer: Answer) -> None:
    """Make a page show the component at `ADDRESS`, with these values of its model, whose messages are answered."""
    known = page in PLACED
    PLACED[page] = initial, answer
    if not known:
        page.expose_function("initial", lambda: PLACED[page][0])
        page.expose_function("asked", lambda message: PLACED[page][1](message))
    page.route("**/*", _answer)


def numbers(explanation: Explanation) -> list[str]:
    """The scores as the component says them at the beginning of its labels."""
    [view] = _views([explanation])
    return [bar["said"] for passage in view["passages"] for bar in passage["spans"] if bar["units"]]


def _views(explanations: Sequence[Explanation]) -> list[dict[str, Any]]:
    views: list[dict[str, Any]] = seen(explanations)["views"]  # type: ignore[assignment]
    return views


def _answer(route: "Route") -> None:
    place = "/" + route.request.url.removeprefix(ADDRESS).partition("#")[0]
    if place not in FILES:
        route.fulfill(status=404, body="")
        return
    kind, body = FILES[place]
    headers = {"content-security-policy": POLICY, "content-type": f"{kind}; charset=utf-8"}
    route.fulfill(status=200, body=body, headers=headers)
