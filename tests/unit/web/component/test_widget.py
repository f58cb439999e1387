"""The widget's Python side: settings both ways, answers to the component's messages, HTML where nothing runs."""

import asyncio
import importlib.util
import json
import sys
import threading
from base64 import b64decode
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import raison
from raison.core.errors import InputError, RaisonError, UnknownNameError
from raison.core.results.generation import GenerationExplanation
from raison.judging.map_checks import checked
from raison.report.explanations.output_layout import visible
from raison.web.component.sources import module, style
from raison.web.component.trust_facts import trusted
from tests import apart
from tests.patience import PATIENCE
from tests.tiny import build_language_model

pytest.importorskip("anywidget", reason="no anywidget: pip install 'raison[notebook]'")


def by_length(texts: list[str]) -> np.ndarray:
    sizes = np.array([min(len(text), 100) / 101 for text in texts])
    return np.stack([sizes, 1 - sizes], axis=1)


MODEL = raison.load(by_length, classes=["long", "short"])


class Heard:
    """What a widget sends."""

    def __init__(self, widget: Any) -> None:
        self.messages: list[dict[str, Any]] = []
        widget.send = self.messages.append

    @property
    def last(self) -> dict[str, Any]:
        return self.messages[-1]


def asked(widget: Any, heard: Heard, ask: str, body: dict[str, Any]) -> dict[str, Any]:
    """What the widget answers to a message, as the kernel hands it over."""
    widget._handle_custom_msg({"id": "1", "ask": ask, "body": body}, [])
    assert heard.last["id"] == "1"
    return heard.last


@pytest.mark.parametrize("text", [None, 5, b"a", ("a", "b", "c"), ["a", None], []])
def test_what_is_no_text_is_refused_when_the_widget_is_made(text: Any) -> None:
    with pytest.raises(InputError, match=r"^the widget's text is .*: give a string, a pair of two strings, or a chat"):
        raison.Widget(MODEL, text)


def test_an_unknown_method_is_refused_when_the_widget_is_made() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'occlusion'"):
        raison.Widget(MODEL, "a", "oclusion")
    with pytest.raises(InputError, match="the widget's method is 5: give its name or call"):
        raison.Widget(MODEL, "a", 5)
    assert raison.Widget(MODEL, ("a", "b"), "kernel_shap(samples=8)").method == "kernel_shap(samples=8)"


def test_settings_go_both_ways_and_the_explanation_follows() -> None:
    widget = raison.Widget(MODEL, "one two", method="occlusion")
    assert widget.explanation.scores == raison.explain(MODEL, "one two", "occlusion", progress=False).scores
    widget.text = "one two three"
    assert [unit.text for unit in widget.explanation.units] == ["one", "two", "three"]
    widget.target = ["short", "long"]
    assert (widget.explanation.target, widget.explanation.against) == ("short", "long")
    # What is typed arrives as a change of state.
    widget.set_state({"text": "typed"})
    assert widget.text == "typed"
    assert [unit.text for unit in widget.explanation.units] == ["typed"]


def test_an_interrupted_kernel_is_told_to_the_page() -> None:
    def stopped(texts: list[str]) -> np.ndarray:
        if any("stop" in text for text in texts):
            raise KeyboardInterrupt
        return by_length(texts)

    widget = raison.Widget(raison.load(stopped, classes=["long", "short"]), "one", method="occlusion")
    heard = Heard(widget)
    told = asked(widget, heard, "explain", {"model": widget.model_name, "text": "now stop", "method": "occlusion"})
    assert told["error"].startswith("The kernel was interrupted.")
    again = asked(widget, heard, "explain", {"model": widget.model_name, "text": "one", "method": "occlusion"})
    assert raison.Explanation.from_dict(again["answer"]).text == "one"


def test_work_that_nobody_waits_for_ends_between_two_passes() -> None:
    begun, go_on, seen = threading.Event(), threading.Event(), []

    def slow(texts: list[str]) -> np.ndarray:
        seen.append(len(texts))
        if any("slow" in text for text in texts):
            begun.set()
            assert go_on.wait(PATIENCE)
        return by_length(texts)

    widget = raison.Widget(raison.load(slow, classes=["long", "short"], batch=1), "one", method="occlusion")
    heard, body = Heard(widget), {"model": widget.model_name, "method": "occlusion", "unit": "word"}

    async def kernel() -> None:
        widget._handle_custom_msg({"id": "1", "ask": "explain", "body": body | {"text": "slow " * 20}}, [])
        widget._handle_custom_msg({"id": "2", "ask": "explain", "body": body | {"text": "slow again"}}, [])
        widget._handle_custom_msg({"id": "3", "ask": "explain", "body": body | {"text": "one two"}}, [])
        # The kernel hears what comes while it computes.
        assert await asyncio.to_thread(begun.wait, 30)
        for dropped in ("1", "2", "never asked"):
            widget._handle_custom_msg({"id": dropped, "drop": True}, [])
        go_on.set()
        while not heard.messages:
            await asyncio.sleep(0.01)

    asyncio.run(kernel())
    [told] = heard.messages
    assert told["id"] == "3"
    expected = raison.explain(MODEL, "one two", "occlusion", progress=False)
    assert raison.Explanation.from_dict(told["answer"]).scores == expected.scores
    # The long text alone would take 21 passes.
    assert len(seen) < 15


def test_the_component_and_its_model_are_sent() -> None:
    widget = raison.Widget({"one": MODEL, "two": MODEL}, ("a", "b"))
    state = widget.get_state()
    assert (state["_esm"], state["_css"]) == (module(), style())
    assert [facts["name"] for facts in state["models"]] == ["one", "two"]
    assert (state["model_name"], state["text"]) == ("one", ["a", "b"])


def test_messages_are_answered() -> None:
    widget = raison.Widget(MODEL, "one two three", method="occlusion")
    heard = Heard(widget)
    name = widget.model_name
    told = asked(widget, heard, "explain", {"model": name, "text": "one two three", "method": "occlusion"})
    assert raison.Explanation.from_dict(told["answer"]) == widget.explanation
    seen = asked(widget, heard, "view", {"explanations": [told["answer"]]})["answer"]
    assert len(seen["views"]) == 1
    trust = asked(widget, heard, "view/trust", {"model": name, "explanation": told["answer"]})["answer"]
    assert trust == trusted(widget.explanation, (), None)
    check = {"model": name, "text": "one two three", "method": "occlusion"}
    found = asked(widget, heard, "check", check)["answer"]
    assert found["remaining"][0] == pytest.approx(widget.explanation.value_full)
    assert found == asdict(checked(MODEL, widget.explanation))


def test_a_model_that_writes_is_shown_by_its_answer() -> None:
    writer = raison.load(*build_language_model("llama"))
    widget = raison.Widget(writer, "the sea is good", method="occlusion")
    widget.max_new_tokens = 3
    heard = Heard(widget)
    e = raison.explain(writer, "the sea is good", "occlusion", max_new_tokens=3, progress=False)
    assert widget.explanation.scores == e.scores
    assert widget.get_state()["face"] == "write"
    body = {"model": widget.model_name, "text": "the sea is good", "max_new_tokens": 3}
    assert asked(widget, heard, "predict", body)["answer"]["output"] == e.output
    told = asked(widget, heard, "explain", {**body, "method": "occlusion", "unit": "word", "of": None})["answer"]
    assert told == widget.explanation.to_dict()
    view = asked(widget, heard, "view/output", {"explanation": told})["answer"]
    assert [token["text"] for token in view["tokens"]] == [visible(token.text) for token in e.tokens]
    file = asked(widget, heard, "view/file", {"results": [told], "kind": "json"})["answer"]
    assert GenerationExplanation.from_dict(json.loads(b64decode(file["content"]))) == widget.explanation
    widget.output = " a plot"
    assert widget.explanation.output == " a plot"
    assert widget.explanation._repr_html_() == widget._repr_mimebundle_()[0]["text/html"]
    for ask, wrong in (("explain", {"model": "other"}), ("predict", {"text": 5}), ("view", {}), ("predict", {"x": 1})):
        refused = asked(widget, heard, ask, {**body, **wrong})["error"]
        assert "\n" not in refused
    with pytest.raises(RaisonError, match="a separate widget for each kind"):
        raison.Widget({"one": MODEL, "two": writer}, "a")


@pytest.mark.parametrize(
    ("ask", "body", "said"),
    [
        ("explain", {"model": "other", "text": "a"}, "unknown model"),
        ("explain", {"model": MODEL.name, "text": " "}, "text"),
        ("check", {"model": "other", "text": "a"}, "unknown model"),
        ("view/trust", {"model": MODEL.name}, "explanations"),
        ("view", {"explanations": []}, "nothing to show"),
        ("remove", {}, "remove"),
    ],
)
def test_mistakes_are_one_line(ask: str, body: dict[str, Any], said: str) -> None:
    widget = raison.Widget(MODEL, "one")
    told = asked(widget, Heard(widget), ask, body)
    assert said in told["error"]
    assert "\n" not in told["error"]


def test_html_stands_beside_the_widget_for_where_nothing_runs() -> None:
    widget = raison.Widget(MODEL, "one two", method="occlusion")
    data, _ = widget._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in data
    assert data["text/html"] == widget.explanation._repr_html_()
    assert "text/html" not in raison.Widget(MODEL)._repr_mimebundle_()[0]


@pytest.mark.parametrize("given", [{}, "demo/sst2", {"one": by_length}])
def test_what_is_no_model_is_refused(given: Any) -> None:
    with pytest.raises(RaisonError, match="model"):
        raison.Widget(given, "one")


def test_a_folder_of_audits_has_to_be_there() -> None:
    with pytest.raises(RaisonError, match="runs cannot be 'nowhere'"):
        raison.Widget(MODEL, "one", runs="nowhere")


def _without_anywidget() -> None:
    for name in [name for name in sys.modules if name.startswith("raison.web")]:
        del sys.modules[name]
    sys.modules["anywidget"] = None  # type: ignore[assignment]
    found = importlib.util.find_spec
    importlib.util.find_spec = lambda name, *rest: None if name == "anywidget" else found(name, *rest)
    exec("from raison import *", {})
    try:
        assert raison.Widget
    except RaisonError as error:
        sys.stderr.write(str(error))


def test_without_anywidget_the_rest_is_there_and_the_widget_says_what_to_install(tmp_path: Path) -> None:
    process = apart.started(_without_anywidget, said := tmp_path / "said")
    process.join()
    assert process.exitcode == 0, said.read_text(encoding="utf-8")
    assert "raison[notebook]" in said.read_text(encoding="utf-8")
