"""Runs in folders. Only files below one folder are read; links are followed before the check."""

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, wraps
from itertools import islice
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from raison.core.errors import DataError, InputError, RaisonError, UnknownNameError
from raison.core.results.printable import printable
from raison.jobs.identity import Identity
from raison.report.explanations.listed import Listable
from raison.runs.overview import Overview, overview
from raison.web.rows.folders import MOST, State, below, inside, state_of
from raison.web.rows.lines import OVERVIEW, AbsentError, RowKey, RunFacts, RunLine
from raison.web.server.runs.run_contents import MARKERS, RunContents, belonging, contents_of

LOG = logging.getLogger("raison.serve")
Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")


def _found(
    method: Callable[Concatenate["RunFolders", Arguments], Answer],
) -> Callable[Concatenate["RunFolders", Arguments], Answer]:
    """A method that raises AbsentError for a run that is deleted while it is read, and names files by their place below
    the folder of runs: clients need not learn where it lies."""

    @wraps(method)
    def answer(folders: "RunFolders", /, *args: Arguments.args, **named: Arguments.kwargs) -> Answer:
        try:
            return method(folders, *args, **named)
        except FileNotFoundError as error:
            gone = folders.without_root(str(error.filename))
            raise AbsentError(f"the run was deleted while it was read: {gone} is gone.") from error
        except (DataError, InputError) as error:
            told = folders.without_root(str(error))
            if told == str(error):
                raise
            raise (InputError if isinstance(error, InputError) else DataError)(told) from error

    return answer


class RunFolders:
    """The runs below a folder; none without one."""

    def __init__(self, folder: Path | None) -> None:
        self._root = None if folder is None else folder.resolve()
        # Large files are read by one request at a time, and again only after changes; few are kept, because each takes
        # memory.
        self._reads = threading.Lock()
        self._reasons: dict[str, str] = {}
        self._facts = lru_cache(maxsize=MOST)(self._stating)
        self._held = lru_cache(maxsize=4)(self._holding)
        self._lined = lru_cache(maxsize=4)(self._lining)
        self._told = lru_cache(maxsize=16)(self._telling)

    def all(self) -> list[RunFacts]:
        """Every run that can be read, by its path."""
        runs = []
        for name, folder in self._folders():
            try:
                runs.append(self._facts(name, folder, _state(folder)))
            except (RaisonError, OSError) as error:
                # A run of another version, a broken one, or one that was just deleted: the others are still listed.
                self._left_out(name, str(error))
        return runs

    def without_root(self, message: str) -> str:
        """The message with paths that begin below the folder of runs."""
        return message if self._root is None else message.replace(f"{self._root}/", "")

    def _left_out(self, name: str, reason: str) -> None:
        """Log once why a run is not listed."""
        if self._reasons.get(name) != reason:
            self._reasons[name] = reason
            LOG.warning("the run %s is not listed: %s", printable(name), printable(reason))

    @_found
    def lines(self, place: RowKey) -> Sequence[RunLine]:
        """The texts of a row. Raises AbsentError, DataError."""
        folder = self._folder(place.run)
        with self._reads:
            return self._lined(folder, _state(folder), place)

    @_found
    def overview(self, place: RowKey) -> Overview:
        """The words of a row. Raises AbsentError, DataError."""
        folder = self._folder(place.run)
        with self._reads:
            return self._told(folder, _state(folder), place)

    @_found
    def explanation(self, place: RowKey, number: int) -> Listable:
        """One explanation of a row. Raises AbsentError, DataError."""
        folder = self._folder(place.run)
        with self._reads:
            return self._held(place.run, folder, _state(folder)).explanation(place, number)

    @_found
    def identity(self, run: str) -> Identity:
        """The identity of a run. Raises AbsentError, DataError."""
        return contents_of(run, self._folder(run)).identity

    def _folders(self) -> Iterator[tuple[str, Path]]:
        """Folders of runs, by their paths below the root."""
        return ((name, folder) for name, folder in self._marked() if self._is_inside(folder))

    def _marked(self) -> Iterator[tuple[str, Path]]:
        """The same with those that contain links to places outside of the root."""
        return iter(()) if self._root is None else below(self._root, MARKERS)

    def _is_inside(self, folder: Path) -> bool:
        return self._root is not None and inside(folder, self._root, belonging(folder))

    def _folder(self, run: str) -> Path:
        """A run's folder, one of those that were found, so that no path of a request is ever opened."""
        # The files of other runs, which may have thousands, are not looked at.
        for name, folder in self._marked():
            if name == run and self._is_inside(folder):
                return folder
        raise AbsentError(str(UnknownNameError("run", run[:200], dict(self._folders()))))

    def _stating(self, name: str, folder: Path, state: State) -> RunFacts:
        return contents_of(name, folder).facts

    def _holding(self, name: str, folder: Path, state: State) -> RunContents:
        return contents_of(name, folder)

    def _lining(self, folder: Path, state: State, place: RowKey) -> tuple[RunLine, ...]:
        return self._held(place.run, folder, state).lines(place)

    def _telling(self, folder: Path, state: State, place: RowKey) -> Overview:
        explanations = self._held(place.run, folder, state).explanations(place)
        return overview(list(islice(explanations, OVERVIEW)))


def _state(folder: Path) -> State:
    return state_of(belonging(folder))
