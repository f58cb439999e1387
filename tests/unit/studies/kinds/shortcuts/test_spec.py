"""The file of a study of shortcuts."""

import tomllib
from pathlib import Path

import pytest

from raison.studies.file import MistakesError
from raison.studies.kinds.shortcuts.spec import parse
from tests.study_files import SHORTCUTS


def test_a_share_of_too_few_rows_is_refused() -> None:
    table = tomllib.loads(SHORTCUTS.replace("shares = [0.3]", "shares = [0.3, 0.2]"))
    with pytest.raises(MistakesError) as refused:
        parse(table, Path(), None)
    assert refused.value.mistakes == (
        "shares: 0.2 of 17 rows are 3, and a word in fewer than 5 cannot be found: raise the share, or rows.",
    )


@pytest.mark.parametrize(("key", "line"), [("above", "above is 0.2; give a text in quotes."), ("says", "says is 0.2;")])
def test_a_key_of_a_claim_that_cannot_be_read_is_one_mistake(key: str, line: str) -> None:
    claim = {"says": "it is found", "above": "planted 0.3", "than": 0.5} | {key: 0.2}
    with pytest.raises(MistakesError) as refused:
        parse(tomllib.loads(SHORTCUTS) | {"claims": [claim]}, Path(), None)
    (found,) = refused.value.mistakes
    assert found.startswith(f"[[claims]] number 1: {line}")
