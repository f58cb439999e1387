"""Where a model's number stands among those of other texts: ranks and spread, against scipy."""

from dataclasses import asdict

import pytest
from scipy.stats import rankdata, zscore

import raison
from raison.core.errors import DataError
from raison.core.results.explanation import Explanation
from raison.core.results.number_rank import NumberRank
from raison.report.style import phrases

VALUES = [2.0, -1.0, 3.5, 2.0, 0.5]


def test_ranks_and_distances_are_those_of_scipy() -> None:
    found = [NumberRank.of(value, VALUES) for value in VALUES]
    assert [one.rank for one in found] == rankdata([-value for value in VALUES], "min").tolist()
    distances = [one.distance(value) for one, value in zip(found, VALUES, strict=True)]
    assert distances == pytest.approx(zscore(VALUES, ddof=1).tolist())
    assert NumberRank.of(1.0, [1.0, 1.0]).distance(1.0) == 0.0


def lengths(texts: list[str]) -> list[float]:
    return [float(len(text.split())) for text in texts]


def test_several_texts_of_a_call_say_where_they_stand() -> None:
    model = raison.load(lengths, classes=["words"])
    texts = ["one", "one two", "one two three four", "one two three"]
    found = raison.explain(model, texts, "occlusion", progress=False)
    assert [e.notes["among"]["rank"] for e in found] == [4, 3, 1, 2]
    assert found[2].notes["among"] == asdict(NumberRank.of(4.0, [1.0, 2.0, 4.0, 3.0]))
    assert phrases.verdict(found[2]).line.endswith("(words), rank 1 of 4 texts, 1.2 SD above their mean")
    assert phrases.verdict(found[0]).line.endswith("rank 4 of 4 texts, 1.2 SD below their mean")
    assert Explanation.from_json(found[2].to_json()) == found[2]
    alone, two = raison.explain(model, "one", "occlusion"), raison.explain(model, texts[:2], "occlusion")
    assert not any("among" in e.notes for e in (alone, *two))
    with pytest.raises(DataError, match="among"):
        Explanation.from_dict(found[2].to_dict() | {"notes": {"among": {"rank": 0}}})


def test_two_documents_of_several_say_how_far_apart_they_are() -> None:
    def number(pairs: list[tuple[str, str]]) -> list[float]:
        return [float(len(document.split())) for _, document in pairs]

    model = raison.load(number, classes=["words"], pairs=True)
    documents = ["a b c d", "a", "a b", "a b c"]
    e = raison.explain(model, ("q", documents), "occlusion", target=(2, 1), progress=False)
    assert phrases.verdict(e).line == (
        "document 3 before document 2 by 1.00, ranks 3 and 4 of 4 documents, 0.8 SD of their numbers"
    )
    two = raison.explain(model, ("q", documents[:2]), "occlusion", progress=False)
    assert "rank" not in phrases.verdict(two).line
