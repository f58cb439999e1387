"""The tests of one map."""

import raison
from raison.judging.map_checks import REMOVALS, checked


def test_no_more_texts_are_evaluated_than_is_said() -> None:
    read: list[str] = []

    def counted(texts: list[str]) -> list[list[float]]:
        read.extend(texts)
        return [[one, 1 - one] for one in (1 / (1 + len(text)) for text in texts)]

    model = raison.load(counted, classes=["short", "long"])
    text = " ".join(f"word{number}{'s' * (number % 5)}" for number in range(30))
    e = raison.explain(model, text, "occlusion", progress=False)
    read.clear()
    raison.evaluate(model, e, "harmless_change", progress=False)
    of_changes = len(read)
    read.clear()
    assert checked(model, e).shuffled is not None
    # The whole text is read in the test with changed texts, too.
    assert len(read) - of_changes <= REMOVALS - 1
    assert read.count(text) <= 3
