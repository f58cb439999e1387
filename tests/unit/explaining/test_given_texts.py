"""Any sequence of texts and of names, from every library that callers use."""

from collections.abc import Callable

import datasets
import numpy as np
import pandas as pd
import pytest

from raison.core.errors import InputError
from raison.core.inputs.chat import Chat
from raison.core.inputs.parts import PartedText, parted
from raison.data.dataset import Dataset, Row
from raison.explaining.given_texts import InputOptions, is_one, read_names, read_prompts, read_texts, unit_of
from raison.methods.occlusion import Occlusion

TEXTS = ["good film", "dull plot", "fine"]
ROWS = [{"said": text, "label": 1} for text in TEXTS]

SEQUENCES: dict[str, Callable[[], object]] = {
    "list": lambda: TEXTS,
    "tuple": lambda: tuple(TEXTS),
    "array": lambda: np.array(TEXTS),
    "objects": lambda: np.array(TEXTS, dtype=object),
    "series": lambda: pd.Series(TEXTS, index=[7, 3, 9]),
    "strings": lambda: pd.Series(TEXTS, dtype="string"),
    "column": lambda: datasets.Dataset.from_list(ROWS)["said"],
    "generator": lambda: (text for text in TEXTS),
    "dataset": lambda: Dataset("own", tuple(Row(text, None, 0) for text in TEXTS)),
}
TABLES: dict[str, Callable[[], object]] = {
    "dataset": lambda: datasets.Dataset.from_list(ROWS),
    "frame": lambda: pd.DataFrame(ROWS),
    "rows": lambda: ROWS,
    "columns": lambda: {"said": TEXTS, "label": [1, 1, 1]},
}


@pytest.mark.parametrize("kind", SEQUENCES)
def test_sequences_are_the_same_texts(kind: str) -> None:
    found = read_texts(SEQUENCES[kind]())
    assert found == TEXTS
    assert [type(text) for text in found] == [str] * 3


def test_halves_of_a_character_that_belong_together_are_joined() -> None:
    halves, whole = "good \ud83d\ude00 film", "good \U0001f600 film"
    assert read_texts([halves, (halves, "\ud83d alone")]) == [whole, (whole, "\ud83d alone")]
    assert read_prompts(halves) == ([whole], True)


@pytest.mark.parametrize("kind", TABLES)
def test_tables_have_a_column_of_texts(kind: str) -> None:
    assert read_texts(TABLES[kind](), "said") == TEXTS
    with pytest.raises(InputError, match=r"columns said, label: name the column of the texts with text="):
        read_texts(TABLES[kind]())
    with pytest.raises(InputError, match="no column 'text'.* said, label"):
        read_texts(TABLES[kind](), "text")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["good", 3], r"text 2 of 2 is 3, of type int: a text is a string"),
        (["good", None], r"text 2 of 2 is None.*Leave missing texts out, as with .dropna"),
        ([["good", "bad"]], r"the text is \['good', 'bad'\], of type list.*a pair is a tuple"),
        (["good", ["a", "b", "c"]], "text 2 of 2 is"),
        ([("a", 1)], r"the text is"),
        (
            pd.Series(["good", float("nan")]),
            "text 2 of 2 is nan, of type float.*Leave missing texts out",
        ),
        (pd.Series(["good", pd.NA], dtype=object), "text 2 of 2 is <NA>.*Leave missing texts out"),
        ([("good", None)], "the text is .*Leave missing texts out"),
        (np.array([["a", "b"]]), r"the text is array"),
        (np.array("good"), "give a list of at least one text"),
        (b"good", "of type bytes"),
        (["good", b"bad"], r"text 2 of 2 is b'bad'.*Decode bytes first, as with \.decode\(\)\.$"),
        ({"good", "bad"}, "of type set"),
        (3, "texts are 3, of type int"),
        ([[{"role": "user", "content": "x"}]], r"the text is"),
    ],
)
def test_what_is_no_text_is_told_with_its_place(given: object, said: str) -> None:
    with pytest.raises(InputError, match=said):
        read_texts(given)


def test_one_or_several() -> None:
    parts = parted("good film", [(0, 4)])
    assert all(is_one(given) for given in ("a", ("a", "b"), parts, 3, None, b"a", np.str_("a")))
    assert not any(is_one(given) for given in (["a"], ("a",), ("a", "b", "c"), (("a", "b"),), np.array(["a"])))


def test_units_of_several_texts() -> None:
    found = read_texts(TEXTS[:2], units=[[(0, 4)], {"what": (5, 9)}])
    assert all(isinstance(text, PartedText) for text in found)
    assert [text.parts[0].text for text in found] == ["good", "plot"]
    for units in ([[(0, 4)]], {"what": (0, 4)}, 3):
        with pytest.raises(InputError, match="2 texts need a list of units of the same length"):
            read_texts(TEXTS[:2], units=units)
    with pytest.raises(InputError, match="already has its own parts"):
        read_texts(found, units=[[(0, 4)]] * 2)


def test_the_unit_is_the_part_where_texts_have_some() -> None:
    parts = parted("good film", [(0, 4)])
    assert unit_of(None, TEXTS) == "word"
    assert unit_of(None, [parts]) == unit_of("part", [parts]) == "part"
    assert unit_of("token", [parts]) == unit_of("token", [parts, "a"]) == "token"
    with pytest.raises(InputError, match=r"text 2 of 2 has no parts"):
        unit_of(None, [parts, "a"])
    with pytest.raises(InputError, match="leave unit out"):
        unit_of("word", [parts], [[(0, 4)]])


@pytest.mark.parametrize(
    "given", ["lime", ["lime"], ("lime",), np.array(["lime"]), pd.Series(["lime"]), {"lime": 1}.keys()]
)
def test_names(given: object) -> None:
    assert read_names(given) == ["lime"]


def test_instances_and_classes_are_names_too() -> None:
    assert read_names(Occlusion()) == [Occlusion()]
    assert read_names(Occlusion) == [Occlusion]
    assert read_names(["lime", Occlusion()]) == ["lime", Occlusion()]


def test_prompts_and_chats() -> None:
    chat = [{"role": "user", "content": "hello"}]
    assert read_prompts("hello") == (["hello"], True)
    assert read_prompts(chat) == ([Chat(tuple(chat))], True)
    assert read_prompts([chat, chat]) == ([Chat(tuple(chat))] * 2, False)
    assert read_prompts(Chat(chat)) == ([Chat(chat)], True)
    assert read_prompts(("a", "b")) == (["a", "b"], False)
    assert read_prompts([{"prompt": "a"}], "prompt") == (["a"], False)
    assert read_prompts("hello", units=[(0, 5)])[0][0].parts[0].text == "hello"
    for wrong, said in (([], "at least one prompt"), (["a", 3], r"text 2 of 2 is 3"), (None, "the prompt is None")):
        with pytest.raises(InputError, match=said):
            read_prompts(wrong)
    with pytest.raises(InputError, match="parts of a chat are its messages"):
        read_prompts(chat, units=[(0, 1)])


def test_sentences_of_a_language_are_parts() -> None:
    text = "Das kam am 3. Oktober. Es war gut."
    texts = InputOptions("sentence", language="de").any(text)
    [found] = texts.texts
    assert isinstance(found, PartedText)
    assert [part.text for part in found.parts] == ["Das kam am 3. Oktober.", "Es war gut."]
    assert (texts.unit, texts.single) == ("part", True)
    [pair], _ = InputOptions("sentence", language="de").several([(text, "Ja.")])
    assert [part.segment for part in pair.parts] == [0, 0, 1]
    for reading, given, said in (
        (InputOptions("word", language="de"), text, "use unit='sentence'"),
        (InputOptions(language="de"), text, "use unit='sentence'"),
        (InputOptions("sentence", language="German"), text, "such as 'de'"),
        (InputOptions("sentence", language="de"), " ", "empty or blank"),
    ):
        with pytest.raises(InputError, match=said):
            reading.any(given)


def test_no_text_at_all_is_refused_where_some_are_needed() -> None:
    assert InputOptions().any([]).texts == []
    for given in ([], np.array([], dtype=str)):
        with pytest.raises(InputError, match="list of at least one text"):
            InputOptions().several(given)
    with pytest.raises(InputError, match="give a list of at least one text"):
        InputOptions().several("good film")


TABLE = {"q": ["the old man", "a boat"], "d": ["the sea", "old"]}
RECORDS = [dict(zip(TABLE, values, strict=True)) for values in zip(*TABLE.values(), strict=True)]
PAIRS = [("the old man", "the sea"), ("a boat", "old")]


@pytest.mark.parametrize(
    "given",
    [lambda: TABLE, lambda: RECORDS, lambda: iter(RECORDS), lambda: pd.DataFrame(TABLE)],
    ids=["table", "rows", "generator", "frame"],
)
def test_two_columns_are_pairs(given):
    assert read_texts(given(), ["q", "d"]) == PAIRS


def test_columns_of_two_lengths_are_refused():
    with pytest.raises(InputError, match="have 2 and 1 texts"):
        read_texts(TABLE | {"d": ["the sea"]}, ["q", "d"])


@pytest.mark.parametrize("column", [["q"], ["q", "d", "q"], slice(0, 1), ("q", "d"), ["q", ["d"]]])
def test_other_columns_are_refused(column):
    with pytest.raises(InputError, match="text= is"):
        read_texts(TABLE, column)


def test_columns_of_one_name_are_refused():
    table = pd.DataFrame([["a b", "c d"]], columns=["t", "t"])
    with pytest.raises(InputError, match="'t' is no column but a table"):
        read_texts(table, "t")


@pytest.mark.parametrize("row", [{"said": "good", "label": 1}, {"said": "so good", "label": 1}, {"said": 5}])
def test_one_row_is_no_column(row: dict[str, object]) -> None:
    """Its letters are no texts."""
    told = r"this is one row: give row\['said'\], or a list of rows"
    for read in (read_texts, read_prompts):
        with pytest.raises(InputError, match=told):
            read(row, column="said")


def test_halves_of_a_character_are_joined_in_chats() -> None:
    [chat], _ = read_prompts([{"role": "user", "content": "sea \ud83d\ude00"}])
    assert isinstance(chat, Chat)
    assert chat.messages[0]["content"] == "sea \U0001f600"
