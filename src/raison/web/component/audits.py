"""Audits below a folder, by the identity of their model."""

import threading
from collections.abc import Iterator, Mapping
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from raison.combining.advice import advised
from raison.core.errors import RaisonError
from raison.core.model import LanguageModel
from raison.core.results.explanation import Explanation
from raison.jobs.folder import AUDIT, read_marker
from raison.jobs.identity import DATA, FILES, IDENTITY, SETTINGS, Identity
from raison.models.derived.identity import identity_of
from raison.studies.kinds.audit.results import Audit, read
from raison.web.component.trust_facts import ModelAudit, trusted
from raison.web.rows.folders import below, inside, state_of

KEPT = 8
"""Audits that are held in memory."""


class Trusts:
    """Trust facts about models, and about runs whose folders identify their model."""

    def __init__(self, models: Mapping[str, Any], root: Path | None) -> None:
        self._root = None if root is None else root.resolve()
        self._models = {name: model for name, model in models.items() if isinstance(model, LanguageModel)}
        self._reads = threading.Lock()
        self._read = lru_cache(maxsize=KEPT)(self._reading)

    @cached_property
    def identities(self) -> Mapping[str, Identity]:
        """The models' identities by their names. Weights are read."""
        return {name: identity_of(model) for name, model in self._models.items()}

    @cached_property
    def advice(self) -> Mapping[str, str | None]:
        """The recommendations of audits in the cache for the models."""
        return {name: advised(model) for name, model in self._models.items()}

    def prepare(self) -> None:
        """Load the facts about the models now, before requests arrive."""
        if self._root is not None:
            _ = self.identities
        _ = self.advice

    def of(self, model: str, e: Explanation) -> dict[str, object]:
        """Trust facts about a map of one of the models."""
        wanted = None if self._root is None else self.identities.get(model)
        return trusted(e, self._audits(wanted, e), self.advice.get(model))

    def of_run(self, identity: Identity, e: Explanation) -> dict[str, object]:
        """Trust facts about a map of a run; `model` is the name of the exact model if it is loaded, otherwise None."""
        wanted = model_part(identity)
        model = next(
            (name for name, identity_here in self.identities.items() if identity_here and identity_here == wanted), None
        )
        known = trusted(e, self._audits(wanted, e), None if model is None else self.advice[model])
        return {**known, "model": model}

    def _audits(self, wanted: Identity | None, e: Explanation) -> Iterator[ModelAudit]:
        """The audits of this exact model, of the units and the value that a map explains."""
        if self._root is None or not wanted:
            return
        for name, folder in below(self._root, [AUDIT.marker]):
            if not inside(folder, self._root, folder.rglob("*")):
                continue
            try:
                if not self._fits(folder, wanted, e):
                    continue
                with self._reads:
                    audit = self._read(folder, state_of(folder.rglob("*")))
            except RaisonError:
                # An unfinished audit, or one of another version.
                continue
            yield ModelAudit(name, audit)

    def _fits(self, folder: Path, wanted: Identity, e: Explanation) -> bool:
        header = read_marker(folder, AUDIT) or {}
        known = header.get(IDENTITY)
        same = isinstance(known, dict) and all(known.get(name) == wanted[name] for name in wanted)
        return same and (header.get("unit"), header.get("of")) == (e.unit, e.of)

    def _reading(self, folder: Path, state: object) -> Audit:
        return read(folder)


def model_part(identity: Identity) -> dict[str, str]:
    """The part of a run's identity that describes its model."""
    return {
        name: digest for name, digest in identity.items() if name not in (DATA, SETTINGS) and not name.startswith(FILES)
    }
