"""Servers of tiny models for the tests of `raison serve`."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from starlette.testclient import TestClient

import raison
from raison.web.server.app import application
from raison.web.server.served import ServedModels
from raison.web.server.settings import Access, Limits, VisibleFolders
from tests.functions import CLASSES, shares
from tests.tiny import TINY

BERT = "tiny"
WORDS = "words"
LOCAL = "http://localhost:8000"


def bert() -> Any:
    """A tiny classifier whose randomness is off."""
    return raison.load(*TINY["bert"]())


def words() -> Any:
    """A function whose explanations are known."""
    return raison.load(shares, classes=CLASSES)


@contextmanager
def serving(served: ServedModels) -> Iterator[TestClient]:
    """A client of a server in this process."""
    with TestClient(application(served), base_url=LOCAL, raise_server_exceptions=False) as client:
        yield client


def served_words(
    limits: Limits | None = None, access: Access | None = None, shown: VisibleFolders | None = None
) -> ServedModels:
    """A server of the function alone."""
    return ServedModels({WORDS: words()}, access or Access(), limits or Limits(), shown or VisibleFolders())


def without_time(explanation: dict[str, Any]) -> dict[str, Any]:
    """An explanation's JSON without what no two calls have in common."""
    return explanation | {"seconds": 0.0}


def kept_off(limits: Limits | None = None) -> Limits:
    """Limits with which every request is computed."""
    return replace(limits or Limits(), keep=0)
