"""POST /api/cite as a call of the library."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from raison.core.errors import UnknownNameError
from raison.core.model import LanguageModel
from raison.core.registry import label_of
from raison.core.settings.reading import dump
from raison.explaining.cite import cited
from raison.explaining.sources.answer_statements import NEW_TOKENS, AnswerRequest
from raison.explaining.sources.citation_settings import CitationSettings
from raison.explaining.sources.sourced_prompt import sourced_prompt
from raison.models.adapters.writing.writer import Writer
from raison.text.sourced import names
from raison.web.server.bodies import CiteBody, given
from raison.web.server.calls import ModelRequest, check_call, check_size, json_of
from raison.web.server.pass_bounds import of_citations
from raison.web.server.settings import Limits


@dataclass(frozen=True)
class CitationsRequest(ModelRequest):
    """One question with its sources; questions are answered one by one."""

    body: CiteBody
    citing: CitationSettings
    together: int = 1

    @classmethod
    def read(cls, body: CiteBody, limits: Limits) -> "CitationsRequest":
        """Raises a RaisonError for settings that are invalid for any question."""
        check_size(body, limits, "question, sources and answer have")
        # A template of another name would be a file.
        if body.template is not None and "{" not in body.template and body.template not in names():
            raise UnknownNameError("template", body.template, names())
        limit = None if body.answer is not None else min(NEW_TOKENS, limits.new_tokens)
        citing = CitationSettings.from_options(
            template=body.template,
            method=body.method,
            within=body.within,
            removal=body.removal,
            seed=body.seed,
            max_new_tokens=body.max_new_tokens or limit,
            draws=body.draws,
        )
        check_call(citing.method, limits)
        return cls(body, citing)

    @property
    def about(self) -> object:
        return self.body.model_dump(include={"question", "sources", "answer", "statements"})

    @property
    def settings(self) -> str:
        left = {"question", "sources", "answer", "statements"}
        return dump(self.body.model_dump(exclude=left) | {"method": label_of(self.citing.method)})

    def check(self, model: LanguageModel | Writer, limits: Limits) -> None:
        if not isinstance(model, Writer):
            return
        prompt = sourced_prompt(model, _question(self.body), self.body.sources, self.citing.template)
        of_citations(model, prompt, self._wanted, self.citing).check("this", limits)

    def run(self, model: Any, requests: Sequence[ModelRequest]) -> list[bytes]:
        citations = cited(model, _question(self.body), self.body.sources, self._wanted, self.citing)
        return [json_of(citations.to_dict())]

    @property
    def _wanted(self) -> AnswerRequest:
        given = self.body.statements
        statements = None if given is None else [(start, end) for start, end in given]
        return AnswerRequest(self.body.answer, statements, self.citing.max_new_tokens)


def _question(body: CiteBody) -> Any:
    """The question or the conversation, as raison.cite takes it."""
    return body.question if isinstance(body.question, str) else given(body.question)
