"""The settings of citations: one record for a call, the rows of a file, an estimate and a server."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack, get_args

from raison.core.errors import InputError, UnknownNameError
from raison.core.method import Method, Property
from raison.core.targets.choices import Of, plain_number
from raison.explaining.settings import DRAWS
from raison.methods import CATALOGUE
from raison.text.sourced import SourceTemplate, find

Within = Literal["sentence", "source"]
AUTO: dict[Within, str] = {"sentence": "hierarchical_occlusion", "source": "occlusion"}
"""Exact, and the fewest passes."""
ADDITIVE = frozenset({Property.COMPLETE, Property.TOKENWISE, Property.LINEAR})
"""A method with one of these gives a source the sum of its sentences' scores."""
WITH_SOURCES = ADDITIVE | {Property.GROUPED}
"""A method with one of these gives sources scores along with their sentences."""


class CitationOptions(TypedDict, total=False):
    """The settings of `cite` by name, for type checkers."""

    template: SourceTemplate | str | Path | None
    method: str | Method
    within: Within
    removal: str
    seed: int
    max_new_tokens: int | None
    draws: int


@dataclass(frozen=True, slots=True)
class CitationSettings:
    """How answers are written and their statements scored; see `cite`."""

    method: Method
    template: SourceTemplate | None = None
    within: Within = "sentence"
    removal: str = "delete"
    seed: int = 0
    max_new_tokens: int | None = None
    draws: int = DRAWS

    def __post_init__(self) -> None:
        for name in ("draws", "seed"):
            object.__setattr__(self, name, plain_number(getattr(self, name)))
        if type(self.seed) is not int or self.seed < 0:
            raise InputError(f"seed cannot be {self.seed!r:.40}: give a whole number from 0.")
        if type(self.draws) is not int or self.draws < 0:
            raise InputError(
                f"draws cannot be {self.draws!r}: it is the number of random texts. Give a whole number, or 0 for no "
                "lights."
            )

    @classmethod
    def from_options(cls, **options: Unpack[CitationOptions]) -> "CitationSettings":
        """The settings with the method and the template of these names.

        Raises InputError, UnknownNameError, and DataError for a template that cannot be read.
        """
        for name in options:
            if name not in CitationOptions.__annotations__:
                raise UnknownNameError("setting of cite", name, CitationOptions.__annotations__)
        within = options.get("within", "sentence")
        if within not in get_args(Within):
            raise UnknownNameError("level (within=)", within, get_args(Within))
        method, template = options.get("method", "auto"), options.get("template")
        chosen = CATALOGUE.create(AUTO[within] if method == "auto" else method)
        others: dict[str, Any] = {name: value for name, value in options.items() if name not in ("method", "template")}
        return cls(chosen, None if template is None else find(template), **others)

    @property
    def of(self) -> Of:
        """The quantity that the scores explain."""
        return self.method.statement_value

    @property
    def scores_apart(self) -> bool:
        """Whether sources are scored by themselves because the scores of their sentences give none."""
        return self.within == "sentence" and WITH_SOURCES.isdisjoint(self.method.properties)
