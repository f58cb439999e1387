"""Slices of a run's texts."""

import json

from pydantic import TypeAdapter

from raison.web.rows.lines import RunLine
from raison.web.rows.slices import Cut, Slice, TextFilter, slice_of


def test_half_a_character_does_not_stop_a_slice() -> None:
    text = "a lovely film \ud83d"
    line = RunLine(0, "", text, None, text, "positive", 0.9, 4, "\ud83d", 2, 0, 0.1)
    pair = RunLine(1, "", [text, "b"], None, "negative", "negative", 0.9, 4, None, 2, 0, 0.1)
    found = slice_of([line, pair], TextFilter(), Cut())
    sent = json.loads(TypeAdapter(Slice).dump_json(found))
    assert [row["text"] for row in sent["rows"]] == ["a lovely film \ufffd", ["a lovely film \ufffd", "b"]]
    assert (sent["rows"][0]["prediction"], sent["rows"][0]["top"]) == ("a lovely film \ufffd", "\ufffd")
