"""The tests of one text on demand."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from raison.core.errors import InputError
from raison.core.model import LanguageModel
from raison.core.results.explanation import Explanation
from raison.core.settings.reading import parse
from raison.judging.map_checks import checked
from raison.models.adapters.writing.writer import Writer
from raison.web.server.bodies import ExplainBody
from raison.web.server.calls import ExplanationRequest, ModelRequest, json_of
from raison.web.server.pass_bounds import of_check
from raison.web.server.settings import Limits


@dataclass(frozen=True)
class CheckRequest(ModelRequest):
    """POST /api/check: an explanation, and the tests of its text; `known` is the former's stored answer, if any."""

    own: ExplanationRequest
    body: ExplainBody
    together: int = 1
    known: bytes | None = None

    @classmethod
    def read(cls, body: ExplainBody, limits: Limits) -> "CheckRequest":
        """Raises a RaisonError for settings that are invalid for any text."""
        if body.target == "each" or body.select is not None:
            raise InputError("a check tests a single map: leave target='each' and select out.")
        return cls(ExplanationRequest.read(body, limits), body)

    @property
    def about(self) -> object:
        return self.own.about

    @property
    def settings(self) -> str:
        return self.own.settings

    def check(self, model: LanguageModel | Writer, limits: Limits) -> None:
        if isinstance(model, Writer):
            raise InputError("a check is for explanations of predictions, and this model is generative.")
        bound = of_check(model, self.body, self.own.method)
        bound.check(f"a check of {self.own.label:.80}", limits)

    def run(self, model: Any, requests: Sequence[ModelRequest]) -> list[bytes]:
        [answer] = [self.known] if self.known is not None else self.own.run(model, [self.own])
        e = Explanation.from_dict(parse(answer.decode(), "an explanation"))
        return [json_of(asdict(checked(model, e)))]
