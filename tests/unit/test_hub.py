"""A Hub that accepts and never answers is given up after seconds, with a line; what was downloaded is still read."""

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from huggingface_hub import constants

import raison
from raison import hub
from raison.core.errors import DataError, LoadError
from tests.patience import slowness


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    """The address of a server that accepts and never answers."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        # Connections wait here for ever: nobody accepts them.
        server.listen(16)
        address = f"http://127.0.0.1:{server.getsockname()[1]}"
        monkeypatch.setattr(constants, "ENDPOINT", address)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(hub, "SECONDS", 1)
        yield address


def test_a_hub_that_does_not_answer_is_given_up(silent: str) -> None:
    began = time.monotonic()
    with pytest.raises(LoadError, match=rf"the Hub \({silent}\) did not respond within 1 seconds"):
        raison.load("someone/some-model")
    assert time.monotonic() - began < 20 * slowness()
    assert constants.HF_HUB_OFFLINE is False


def test_data_sets_neither(silent: str) -> None:
    pytest.importorskip("datasets")
    began = time.monotonic()
    with pytest.raises(DataError, match="did not respond within 1 seconds"):
        raison.data.load("someone/some-data")
    assert time.monotonic() - began < 20 * slowness()


def test_a_hub_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    with hub.patiently() as why:
        assert "cannot be reached" in why
        assert constants.HF_HUB_OFFLINE
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with hub.patiently() as why:
        assert why == ""
    assert constants.HF_HUB_OFFLINE


def test_threads_share_a_hub_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    with hub.patiently() as first:
        with hub.patiently() as second:
            assert first == second != ""
        assert constants.HF_HUB_OFFLINE, "the first still reads what was downloaded only"
    assert constants.HF_HUB_OFFLINE is False
