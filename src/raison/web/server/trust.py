"""Trust beside a map: audits below the folder of runs, and the tests of one text on demand."""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from raison.combining.advice import advised
from raison.core.errors import InputError, RaisonError
from raison.core.model import LanguageModel
from raison.core.results.explanation import Explanation
from raison.core.settings.reading import parse
from raison.jobs.folder import AUDIT, read_marker
from raison.jobs.identity import IDENTITY
from raison.models.adapters.writing.writer import Writer
from raison.models.derived.identity import identity_of
from raison.studies.kinds.audit.results import Audit, read
from raison.web.component.checking import checked
from raison.web.component.trusted import Audited, trusted
from raison.web.server.bodies import ExplainBody
from raison.web.server.calls import Asked, AskedExplanation, json_of
from raison.web.server.runs.folders import below, inside, state_of
from raison.web.server.settings import Limits

KEPT = 8
"""Audits that are held in memory."""


@dataclass(frozen=True)
class AskedCheck(Asked):
    """POST /api/check: an explanation, and the tests of its text."""

    own: AskedExplanation
    body: ExplainBody
    together: int = 1

    @classmethod
    def read(cls, body: ExplainBody, limits: Limits) -> "AskedCheck":
        """Raises a RaisonError for what no text could be explained by."""
        if body.target == "each" or body.select is not None:
            raise InputError("one map is checked: leave target='each' and select out.")
        return cls(AskedExplanation.read(body, limits), body)

    @property
    def about(self) -> object:
        return self.own.about

    @property
    def settings(self) -> str:
        return self.own.settings

    def check(self, model: LanguageModel | Writer, limits: Limits) -> None:
        if isinstance(model, Writer):
            raise InputError("maps of predictions are checked, and this model writes.")
        self.own.check(model, limits)

    def run(self, model: Any, asked: Sequence[Asked]) -> list[bytes]:
        [answer] = self.own.run(model, [self.own])
        e = Explanation.from_dict(parse(answer.decode(), "an explanation"))
        return [json_of(checked(model, e))]


class Trusts:
    """What is known of the models that are served. Their identities are taken once, before requests come."""

    def __init__(self, models: Mapping[str, Any], root: Path | None) -> None:
        self._root = None if root is None else root.resolve()
        served = {name: model for name, model in models.items() if isinstance(model, LanguageModel)}
        self._advised = {name: advised(model) for name, model in served.items()}
        self._identities = {} if root is None else {name: identity_of(model) for name, model in served.items()}
        self._reads = threading.Lock()
        self._read = lru_cache(maxsize=KEPT)(self._reading)

    def of(self, model: str, e: Explanation) -> dict[str, object]:
        """What is known of a map of a model that is served."""
        return trusted(e, self._audited(model), self._advised.get(model))

    def _audited(self, model: str) -> Audited | None:
        """The first audit of this very model."""
        wanted = self._identities.get(model)
        if self._root is None or wanted is None:
            return None
        for name, folder in below(self._root, [AUDIT.marker]):
            if not inside(folder, self._root, folder.rglob("*")):
                continue
            try:
                if self._fits(folder, wanted):
                    with self._reads:
                        return Audited(name, self._read(folder, state_of(folder.rglob("*"))))
            except RaisonError:
                # An audit that is not finished, or another version's.
                continue
        return None

    def _fits(self, folder: Path, wanted: Mapping[str, str]) -> bool:
        known = (read_marker(folder, AUDIT) or {}).get(IDENTITY)
        return isinstance(known, dict) and bool(wanted) and all(known.get(name) == wanted[name] for name in wanted)

    def _reading(self, folder: Path, state: object) -> Audit:
        return read(folder)
