"""A list of results in a notebook: its table through messages to the kernel, and plain HTML without a kernel."""

from collections.abc import Mapping, Sequence
from typing import Any

import anywidget
import traitlets

from raison.core.errors import UnknownNameError
from raison.report.explanations.listed import Listable
from raison.report.pages.listing import listing
from raison.web.component.citations_view import citations_seen
from raison.web.component.explain_request import read_explanations
from raison.web.component.messages import reply
from raison.web.component.sources import module, style
from raison.web.component.trust_facts import prediction_of, trusted
from raison.web.component.views import seen
from raison.web.component.writing_request import VIEWS as WRITTEN
from raison.web.rows.in_memory_run import InMemoryRun

VIEWS = {**WRITTEN, "view/citations": citations_seen}
"""Requests about a model's output, by their names."""


class Listing(anywidget.AnyWidget):
    """Texts with their explanations as a table that can be sorted and filtered and opens the map of a text.

    The explanations stay in the kernel, which sends the visible part, 25 texts at a time.
    """

    _esm = module()
    _css = style()

    face = traitlets.Unicode("rows").tag(sync=True)

    def __init__(self, explanations: Sequence[Listable], labels: Sequence[str | None] | None = None) -> None:
        """`labels` are the texts' own, None for an unknown one."""
        self.listed = InMemoryRun(explanations, labels)
        super().__init__()
        self.on_msg(self._asked)

    def _asked(self, _: object, content: Mapping[str, Any], buffers: object) -> None:
        """Answer a message of the component."""
        reply(self.send, self._answer, content)

    def _answer(self, ask: str, body: Mapping[str, Any]) -> dict[str, object]:
        if ask == "runs/trust":
            # The list knows no model.
            return {**trusted(prediction_of(self.listed.at(body)), (), None), "model": None}
        if ask.startswith("runs"):
            return self.listed.answer(ask, body)
        if ask == "view":
            return seen(read_explanations(body))
        if ask in VIEWS:
            return VIEWS[ask](body)
        raise UnknownNameError("question", ask, ["runs", "view", *VIEWS])

    def _repr_mimebundle_(self, **options: Any) -> Any:
        """The live table, and plain HTML for viewers without a kernel: nbviewer, GitHub, an exported page."""
        bundle: Any = super()._repr_mimebundle_(**options)
        data, metadata = bundle
        return {**data, "text/html": listing(self.listed.explanations, self.listed.labels)}, metadata
