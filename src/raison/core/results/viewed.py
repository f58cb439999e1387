"""What explanations and citations have in common: JSON, a page, files, and what a notebook shows."""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, cast

from raison.core.results.views import View, called, rendered
from raison.core.settings.reading import dump

if TYPE_CHECKING:
    from pathlib import Path


class ViewedResult(ABC):
    """A result that is shown by the views that it names."""

    __slots__ = ()

    _page: ClassVar[View]
    _fragment: ClassVar[View]

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""

    def to_json(self, indent: int | None = None) -> str:
        """JSON text that `from_json` reads back to an equal result."""
        return dump(self.to_dict(), indent)

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
