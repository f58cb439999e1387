"""Slices of a run's texts."""

import json

from pydantic import TypeAdapter

from raison.web.rows.lines import RunLine
from raison.web.rows.slices import Cut, Slice, TextFilter, slice_of


def test_a_word_is_found_whole_or_else_in_a_part() -> None:
    texts = ["an art film", "a party", "这部电影很好", "看电影"]
    lines = [RunLine(n, "", text, None, "yes", "yes", 0.9, 4, None, 2, 0, 0.1) for n, text in enumerate(texts)]

    def found(word: str) -> list[int]:
        return [row.number for row in slice_of(lines, TextFilter(word=word), Cut()).rows]

    assert found("art") == [0]
    assert found("ART") == [0]
    assert found("rty") == [1]
    assert found("电影") == [2, 3]
    assert found("none") == []


def test_half_a_character_does_not_stop_a_slice() -> None:
    text = "a lovely film \ud83d"
    line = RunLine(0, "", text, None, text, "positive", 0.9, 4, "\ud83d", 2, 0, 0.1)
    pair = RunLine(1, "", [text, "b"], None, "negative", "negative", 0.9, 4, None, 2, 0, 0.1)
    found = slice_of([line, pair], TextFilter(), Cut())
    sent = json.loads(TypeAdapter(Slice).dump_json(found))
    assert [row["text"] for row in sent["rows"]] == ["a lovely film \ufffd", ["a lovely film \ufffd", "b"]]
    assert (sent["rows"][0]["prediction"], sent["rows"][0]["top"]) == ("a lovely film \ufffd", "\ufffd")
