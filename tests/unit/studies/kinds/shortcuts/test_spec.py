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
