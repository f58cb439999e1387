"""What explanations and citations have in common: JSON, a page, files, and what a notebook shows."""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

from raison.core.errors import DataError
from raison.core.results.views import View, called, rendered
from raison.core.settings.reading import dump, parse, parse_list

if TYPE_CHECKING:
    from pathlib import Path


R = TypeVar("R", bound="ViewedResult")


class ViewedResult(ABC):
    """A result that is shown by the views that it names."""

    __slots__ = ()

    _what: ClassVar[str]
    """What it is, in errors: "an explanation"."""
    _page: ClassVar[View]
    _fragment: ClassVar[View]

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""

    def to_json(self, indent: int | None = None) -> str:
        """JSON text that `from_json` reads back to an equal result."""
        return dump(self.to_dict(), indent)

    @classmethod
    @abstractmethod
    def from_dict(cls: type[R], data: dict[str, Any]) -> R:
        """The inverse of `to_dict`. Raises DataError."""

    @classmethod
    def from_json(cls: type[R], text: str) -> R:
        """Read what `to_json` wrote. Raises DataError."""
        return cls.from_dict(parse(text, cls._what, f", and this is a list: use {cls.__name__}.list_from_json"))

    @classmethod
    def list_from_json(cls: type[R], text: str) -> list[R]:
        """Read what `raison.save` wrote of several results. Raises DataError."""
        one_alone = f", and this is a single object: use {cls.__name__}.from_json"
        results = []
        for place, data in enumerate(parse_list(text, f"a list of {cls.__name__}", one_alone)):
            try:
                results.append(cls.from_dict(data))
            except DataError as error:
                raise DataError(f"[{place}] in the list: {error}") from None
        return results

    def to_html(self) -> str:
        """A standalone page that needs no network."""
        return rendered(self, self._page)

    def show(self) -> None:
        """Show it: in a notebook as HTML, elsewhere in the terminal."""
        called("pages.showing.show", self)

    def save(self, path: "str | Path") -> "Path":
        """Save it to a file whose ending selects the format: .html, .json, .svg, .tex, or .png (needs the extra
        `report`).

        Raises InputError for another ending.
        """
        return cast("Path", called("pages.saving.save", self, path))

    def _repr_html_(self) -> str:
        return rendered(self, self._fragment)
