"""Data sets that cannot be read from the Hub."""

import sys
from types import ModuleType

import pytest

from raison.core.errors import DataError
from raison.data.hub import load_hub


@pytest.mark.parametrize(("name", "hint"), [("sst-2", "'sst2'"), ("IMDB", "'imdb'"), ("someone/else", None)])
def test_a_named_set_that_may_have_been_meant(name: str, hint: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError("not reached")

    unreachable = ModuleType("datasets")
    unreachable.load_dataset = refuse  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "datasets", unreachable)
    with pytest.raises(DataError, match="cannot read the data set") as caught:
        load_hub(name, "train")
    assert (f"Did you mean {hint}" in str(caught.value)) if hint else ("Did you mean" not in str(caught.value))
