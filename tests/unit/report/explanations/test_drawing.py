"""Drawings are XML, whatever a text holds."""

from xml.etree import ElementTree

import pytest

from raison.report.explanations.drawing import svg
from tests.explained import of_words


@pytest.mark.parametrize("number", [*range(0x20), 0x7F, 0x85, 0xD800, 0xDFFF, 0xFFFE, 0xFFFF, 0x1F600])
def test_a_drawing_of_any_text_is_xml(number: int) -> None:
    text = f"good a{chr(number)}b film"
    drawn = svg(of_words(text, (0.25, -0.5, 0.125, 0.0)[: len(text.split())]))
    assert ElementTree.fromstring(drawn.encode()).tag.endswith("svg")
