"""The component in a notebook: Jupyter, VS Code, marimo, Colab, through anywidget (the extra `notebook`)."""

from collections.abc import Mapping
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any, cast

from raison.core.errors import DataError, InputError, RaisonError, UnknownNameError
from raison.core.model import LanguageModel
from raison.core.results.explanation import Explanation
from raison.core.results.generation import GenerationExplanation
from raison.explaining.generation import NEW_TOKENS
from raison.judging.map_checks import checked
from raison.methods import CATALOGUE
from raison.models.adapters.writing.writer import Writer
from raison.report.explanations.html import fragment
from raison.web.component.audits import Trusts
from raison.web.component.explain_request import ExplainRequest, explained, model_of, read_explanations
from raison.web.component.exports import taken
from raison.web.component.messages import Desk
from raison.web.component.model_facts import facts_of
from raison.web.component.sources import module, style
from raison.web.component.views import seen
from raison.web.component.writing_request import WritingRequest, answered, written

if find_spec("anywidget") is None:
    raise DataError("the widget needs anywidget: pip install 'raison[notebook]', or use explain(...).show().")

import anywidget
import traitlets

Offered = LanguageModel | Writer
QUESTIONS = ("explain", "check", "view", "view/trust", "view/file")
"""Requests of the component to models that predict."""
MOST = 1000
"""Maximum number of tokens of an answer in the widget's field."""


class Widget(anywidget.AnyWidget):
    """A text with its map that can be edited in place: every change is predicted and explained again.

    It works in both directions: `w.text = "..."` changes what is shown, and `w.text` has what was typed. So do
    `method`, `unit`, `target`, `of`, `removal`, `seed` and `truncate`, and with several models `model_name`.
    `w.explanation` is the explanation for these settings. Without a kernel, the notebook shows the explanation with
    which it was displayed, as plain HTML.

    For a generative model, the text is a prompt or a chat (a list of messages), and the map is that of its answer:
    `output`, or its own answer with at most `max_new_tokens` tokens.

    Requests of the page are computed in a separate thread, so that the kernel receives "Stop" and can run other cells.
    """

    _esm = module()
    _css = style()

    model_name = traitlets.Unicode().tag(sync=True)
    text = traitlets.Union(
        [
            traitlets.Unicode(),
            traitlets.List(traitlets.Unicode(), minlen=2, maxlen=2),
            traitlets.List(traitlets.Dict(), minlen=1),
        ]
    ).tag(sync=True)
    method = traitlets.Unicode("auto").tag(sync=True)
    unit = traitlets.Unicode("word").tag(sync=True)
    target = traitlets.Any(None, allow_none=True).tag(sync=True)
    of = traitlets.Unicode(None, allow_none=True).tag(sync=True)
    removal = traitlets.Unicode(None, allow_none=True).tag(sync=True)
    seed = traitlets.Int(0, min=0).tag(sync=True)
    truncate = traitlets.Bool(False).tag(sync=True)
    output = traitlets.Unicode("").tag(sync=True)
    max_new_tokens = traitlets.Int(NEW_TOKENS, min=1).tag(sync=True)
    models = traitlets.List(traitlets.Dict()).tag(sync=True)
    face = traitlets.Unicode("predict").tag(sync=True)
    limits = traitlets.Dict({"new_tokens": MOST}).tag(sync=True)
    drops = traitlets.Bool(True, read_only=True).tag(sync=True)

    def __init__(
        self,
        model: Offered | Mapping[str, Offered],
        text: str | tuple[str, str] | list[dict[str, str]] = "",
        method: str = "auto",
        *,
        runs: str | Path | None = None,
    ) -> None:
        """`model` is from `raison.load`, or several of them by name, which can then be compared.

        The folder `runs` may contain audits (`raison.audit(..., out=)`): the light of the audit of this exact model is
        shown below its maps. Raises InputError, UnknownNameError.
        """
        named = dict(model) if isinstance(model, Mapping) else {getattr(model, "name", ""): model}
        _check(named)
        _check_shown(text, method)
        self._named: dict[str, Any] = named
        if runs is not None and not Path(runs).is_dir():
            raise InputError(f"runs cannot be {str(runs)!r:.80}: give an existing folder.")
        self._trusts = Trusts(named, None if runs is None else Path(runs))
        self._computing = Lock()
        self._last: tuple[ExplainRequest | WritingRequest, Explanation | GenerationExplanation] | None = None
        facts = [facts_of(name, one).to_dict() for name, one in named.items()]
        given = text if isinstance(text, str) else list(text)
        face = "write" if isinstance(next(iter(named.values())), Writer) else "predict"
        super().__init__(models=facts, model_name=next(iter(named)), text=given, method=method, face=face)
        self._desk = Desk()
        self.on_msg(self._asked)

    @property
    def explanation(self) -> Any:
        """The explanation for the current settings, computed if necessary. Raises RaisonErrors.

        An Explanation, or a GenerationExplanation for a model that writes.
        """
        return self._explained(self._request())

    def _request(self) -> ExplainRequest | WritingRequest:
        shared = {name: getattr(self, name) for name in ("text", "method", "unit", "of", "removal", "seed")}
        settings = {"model": self.model_name, **shared}
        if self.face == "predict":
            return ExplainRequest.read({**settings, "target": self.target, "truncate": self.truncate})
        output = {"output": self.output} if self.output else {"max_new_tokens": self.max_new_tokens}
        return WritingRequest.read({**settings, **output})

    def _explained(self, request: ExplainRequest | WritingRequest) -> Explanation | GenerationExplanation:
        # A cell may request an explanation that the page is already waiting for.
        with self._computing:
            if self._last is None or self._last[0] != request:
                self._last = request, self._computed(request)
            return self._last[1]

    def _of(self, request: ExplainRequest | WritingRequest) -> Explanation | GenerationExplanation:
        """What a request of the page asks for: the widget's own explanation, which is kept, or another one."""
        return self._explained(request) if request == self._request() else self._computed(request)

    def _computed(self, request: ExplainRequest | WritingRequest) -> Explanation | GenerationExplanation:
        if isinstance(request, ExplainRequest):
            return explained(self._named, request)
        return written(model_of(self._named, request.model), request)

    def _asked(self, _: object, content: Mapping[str, Any], buffers: object) -> None:
        """Answer a message of the component."""
        self._desk.hear(content, self.send, self._answer)

    def _answer(self, ask: str, body: Mapping[str, Any]) -> dict[str, object]:
        if ask == "explain":
            return self._of(
                ExplainRequest.read(body) if self.face == "predict" else WritingRequest.read(body)
            ).to_dict()
        if self.face == "write":
            return answered(self._named, ask, body)
        if ask == "view/trust":
            [e] = read_explanations({"explanations": [body.get("explanation")]})
            return self._trusts.of(str(body.get("model")), e)
        if ask == "check":
            request = ExplainRequest.read(body)
            e = cast("Explanation", self._of(request))
            return asdict(checked(self._named[request.model], e))
        if ask == "view":
            return seen(read_explanations(body))
        if ask == "view/file":
            return taken(body)
        raise UnknownNameError("question", ask, QUESTIONS)

    def _repr_mimebundle_(self, **options: Any) -> Any:
        """The live widget, and plain HTML for viewers without a kernel: nbviewer, GitHub, an exported page."""
        bundle: Any = super()._repr_mimebundle_(**options)
        try:
            html = fragment(self.explanation)
        except RaisonError:
            # For example an empty text: the live widget shows the reason.
            return bundle
        data, metadata = bundle
        return {**data, "text/html": html}, metadata


def _check_shown(text: object, method: object) -> None:
    """Raise InputError unless this is a text, a pair or a chat, and UnknownNameError for an unknown method."""
    parts = list(text) if isinstance(text, list | tuple) else []
    is_pair = len(parts) == 2 and all(isinstance(part, str) for part in parts)
    is_chat = bool(parts) and all(isinstance(part, Mapping) for part in parts)
    if not (isinstance(text, str) or is_pair or is_chat):
        raise InputError(
            f"the widget's text is {text!r:.60}, of type {type(text).__name__}: give a string, a pair of two strings, "
            "or a chat, a list of messages."
        )
    if not isinstance(method, str):
        raise InputError(f"the widget's method is {method!r:.60}: give its name or call, such as 'occlusion'.")
    CATALOGUE.create(method)


def _check(models: Mapping[str, object]) -> None:
    """InputError unless there are models, each one that explains a text's prediction, or each one that writes."""
    if not models:
        raise InputError("the widget needs a model: raison.Widget(raison.load(name), text).")
    for model in models.values():
        if not isinstance(model, LanguageModel | Writer):
            raise InputError(f"the widget needs models from raison.load; got {model!r:.60}.")
    if len({isinstance(model, Writer) for model in models.values()}) > 1:
        raise InputError("some models are generative and others are not: use a separate widget for each kind.")
