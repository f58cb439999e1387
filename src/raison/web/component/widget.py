"""The component in a notebook: Jupyter, VS Code, marimo, Colab, through anywidget (the extra `notebook`)."""

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from raison.core.errors import DataError, InputError, RaisonError
from raison.core.model import LanguageModel
from raison.core.results.explanation import Explanation
from raison.models.adapters.writing.writer import Writer
from raison.report.explanations.html import fragment
from raison.web.component.asked import Request, explained, read_explanations
from raison.web.component.facts import facts_of
from raison.web.component.sources import module, style
from raison.web.component.taken import taken
from raison.web.component.views import seen

if find_spec("anywidget") is None:
    raise DataError("the widget needs anywidget: pip install 'raison[notebook]', or use explain(...).show().")

import anywidget
import traitlets


class Widget(anywidget.AnyWidget):
    """A text with its map, to be edited in place: every change is predicted and explained again.

    Works both ways: `w.text = "..."` changes what is shown, and what is typed is in `w.text`; so are `method`, `unit`,
    `target` and `of`, and `model_name` where several models are given. `w.explanation` is the explanation of these
    settings. Where no kernel runs, the notebook shows the explanation that it was displayed with as plain HTML.
    """

    _esm = module()
    _css = style()

    model_name = traitlets.Unicode().tag(sync=True)
    text = traitlets.Union([traitlets.Unicode(), traitlets.List(traitlets.Unicode(), minlen=2, maxlen=2)]).tag(
        sync=True
    )
    method = traitlets.Unicode("auto").tag(sync=True)
    unit = traitlets.Unicode("word").tag(sync=True)
    target = traitlets.Any(None, allow_none=True).tag(sync=True)
    of = traitlets.Unicode(None, allow_none=True).tag(sync=True)
    models = traitlets.List(traitlets.Dict()).tag(sync=True)

    def __init__(
        self, model: LanguageModel | Mapping[str, LanguageModel], text: str | tuple[str, str] = "", method: str = "auto"
    ) -> None:
        """`model` is from `raison.load`, or several of them by name, which can then be compared."""
        named = dict(model) if isinstance(model, Mapping) else {getattr(model, "name", ""): model}
        _check(named)
        self._named = named
        self._last: tuple[Request, Explanation] | None = None
        facts = [facts_of(name, one).to_dict() for name, one in named.items()]
        given = text if isinstance(text, str) else list(text)
        super().__init__(models=facts, model_name=next(iter(named)), text=given, method=method)
        self.on_msg(self._asked)

    @property
    def explanation(self) -> Explanation:
        """The explanation of the present settings, computed if it is not there yet. Raises RaisonErrors."""
        return self._explained(self._request())

    def _request(self) -> Request:
        settings = {name: getattr(self, name) for name in ("text", "method", "unit", "target", "of")}
        return Request.read({"model": self.model_name, **settings})

    def _explained(self, request: Request) -> Explanation:
        if self._last is None or self._last[0] != request:
            self._last = request, explained(self._named, request)
        return self._last[1]

    def _asked(self, _: object, content: Mapping[str, Any], buffers: object) -> None:
        """Answer a message of the component: an id, what is asked, and its body."""
        try:
            answer = self._answer(content["ask"], content["body"])
        except RaisonError as error:
            self.send({"id": content["id"], "error": str(error)})
            return
        except Exception as error:
            # The page would wait for ever; the kernel's log has the rest.
            self.send({"id": content["id"], "error": f"this is a mistake of raison: {type(error).__name__}"})
            raise
        self.send({"id": content["id"], "answer": answer})

    def _answer(self, ask: str, body: Mapping[str, Any]) -> dict[str, object]:
        if ask == "explain":
            request = Request.read(body)
            wanted = request == self._request()
            return (self._explained(request) if wanted else explained(self._named, request)).to_dict()
        if ask == "view":
            return seen(read_explanations(body))
        if ask == "view/file":
            return taken(body)
        raise InputError(f"the widget answers explain, view and view/file, not '{ask:.40}'.")

    def _repr_mimebundle_(self, **options: Any) -> Any:
        """The live widget, and plain HTML for where nothing runs: nbviewer, GitHub, an exported page."""
        bundle: Any = super()._repr_mimebundle_(**options)
        try:
            html = fragment(self.explanation)
        except RaisonError:
            # An empty text, for one: the live widget says what is wrong.
            return bundle
        data, metadata = bundle
        return {**data, "text/html": html}, metadata


def _check(models: Mapping[str, LanguageModel]) -> None:
    """InputError unless there are models, each one that explains a text's prediction."""
    if not models:
        raise InputError("the widget needs a model: raison.Widget(raison.load(name), text).")
    for name, model in models.items():
        if isinstance(model, Writer):
            raise InputError(f"the widget explains predictions, and '{name}' writes: use explain(...).show() for it.")
        if not isinstance(model, LanguageModel):
            raise InputError(f"the widget takes models from raison.load, and got {model!r:.60}.")
