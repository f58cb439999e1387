"""What follows from a batch of encoded texts."""

from tests.toys import Linear

TEXTS = ["good", "a good film", "not a very good film"]


def test_facts_of_some_texts_are_those_of_these_texts() -> None:
    encoding = Linear().encode(TEXTS, "word")
    assert encoding.unit_counts == (1, 3, 5)
    for rows in ([2, 0], [1], [1, 1]):
        part = encoding.select(rows)
        assert part.unit_counts == tuple(encoding.unit_counts[row] for row in rows)
        assert part.lengths == tuple(encoding.lengths[row] for row in rows)
        assert part.lengths == tuple(part.attention_mask.sum(1).tolist())
        assert part.scored.equal(part.unit_ids >= 0)


def test_facts_are_computed_once() -> None:
    # They are read once per text: computed each time, they would cost time and memory by the square of the texts.
    encoding = Linear().encode(TEXTS, "word")
    assert encoding.lengths is encoding.lengths
    assert encoding.unit_counts is encoding.unit_counts
    assert encoding.scored is encoding.scored
