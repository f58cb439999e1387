"""What two sequences have in common from their beginning."""

import pytest

from raison.text.beginning import common_length


@pytest.mark.parametrize(
    ("first", "second", "length"),
    [("", "", 0), ("", "sea", 0), ("sea", "sea", 3), ("sea", "season", 3), ("season", "sea", 3), ("sea", "see", 2)],
)
def test_the_length_is_that_of_the_beginning_of_both(first: str, second: str, length: int) -> None:
    assert common_length(first, second) == length
    assert common_length(list(map(ord, first)), tuple(map(ord, second))) == length
