"""What is kept are the keys that were added last."""

from raison.models.served.newest import Newest


def test_the_oldest_key_goes() -> None:
    newest = Newest[str, int](2)
    for value, key in enumerate("abc"):
        newest.add(key, value)
    assert newest.items() == [("b", 1), ("c", 2)]
    assert newest.get("a") is None


def test_a_key_that_is_added_again_is_new() -> None:
    newest = Newest[str, int](2)
    for value, key in enumerate("abac"):
        newest.add(key, value)
    assert newest.items() == [("a", 2), ("c", 3)]
