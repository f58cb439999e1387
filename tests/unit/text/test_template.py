"""Texts from templates: fields in, a text with named units out."""

import pytest

from raison.core.errors import InputError
from raison.text.template import template


def test_fields_become_named_units() -> None:
    found = template("Title: {title}\n\n{body}", {"title": " A film ", "body": "It is {good}."})
    assert found.text == "Title:  A film \n\nIt is {good}."
    assert [(part.name, part.text) for part in found.parts] == [("title", "A film"), ("body", "It is {good}.")]
    assert all(found.text[part.start : part.end] == part.text for part in found.parts)


def test_a_field_may_come_twice_and_a_blank_one_has_no_unit() -> None:
    found = template("{a} {{}} {b} {a}", {"a": "x", "b": " "})
    assert found.text == "x {}   x"
    assert [(part.name, part.start) for part in found.parts] == [("a", 0), ("a", 7)]


@pytest.mark.parametrize(
    ("pattern", "fields", "said"),
    [
        ("{titel}", {"title": "x"}, "unknown field of the template 'titel'. Did you mean 'title'"),
        ("{title}", {"title": "x", "body": "y"}, "no slot for the field 'body'"),
        ("{}", {"title": "x"}, "write only a name"),
        ("{title!r}", {"title": "x"}, "write only a name"),
        ("{title:>9}", {"title": "x"}, "write only a name"),
        ("{title", {"title": "x"}, "cannot read the template"),
        ("{title}", {"title": " "}, "all fields of the template are blank"),
    ],
)
def test_what_is_no_template(pattern: str, fields: dict[str, str], said: str) -> None:
    with pytest.raises(InputError, match=said):
        template(pattern, fields)
