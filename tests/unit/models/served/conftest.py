"""Every test has a store of its own, no key, and short pauses."""

from pathlib import Path

import pytest

from raison.models.served import transport


@pytest.fixture(autouse=True)
def _apart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RAISON_CACHE", str(tmp_path))
    for name in ("RAISON_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(transport, "FIRST_PAUSE", 0.01)
