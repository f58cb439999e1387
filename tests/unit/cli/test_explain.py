"""What the command line explains: a text, a pair, a chat, or a query with documents."""

import io

import pytest

from raison.cli.explain import _input
from raison.core.errors import InputError


def test_documents_are_ranked_for_the_text_or_for_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _input("a query", None, ["one", "two"], False) == ("a query", ["one", "two"])
    monkeypatch.setattr("raison.cli.explain._standard_input", io.StringIO("from a pipe").read)
    assert _input("-", None, ["one", "two"], False) == ("from a pipe", ["one", "two"])


@pytest.mark.parametrize(("pair", "chat", "said"), [("ignored", False, "--pair"), (None, True, "--chat")])
def test_documents_exclude_other_inputs(pair: str | None, chat: bool, said: str) -> None:
    with pytest.raises(InputError, match=f"--document and {said} exclude each other"):
        _input("a query", pair, ["one", "two"], chat)
