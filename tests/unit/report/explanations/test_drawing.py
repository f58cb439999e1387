"""Drawings are XML, whatever a text holds."""

from dataclasses import replace
from xml.etree import ElementTree

import pytest

from raison.report.explanations.drawing import svg
from tests.explained import of_words


@pytest.mark.parametrize("number", [*range(0x20), 0x7F, 0x85, 0xD800, 0xDFFF, 0xFFFE, 0xFFFF, 0x1F600])
def test_a_drawing_of_any_text_is_xml(number: int) -> None:
    text = f"good a{chr(number)}b film"
    drawn = svg(of_words(text, (0.25, -0.5, 0.125, 0.0)[: len(text.split())]))
    assert ElementTree.fromstring(drawn.encode()).tag.endswith("svg")


def test_a_long_name_takes_no_number_off_the_legend() -> None:
    name = "World news and politics of the day, as papers and weeklies tell them"
    e = replace(of_words("good film", (0.5, -0.7)), classes=("negative", name), target=name)
    legend = next(text.text for text in ElementTree.fromstring(svg(e)).iter() if text.text and " … " in text.text)
    assert legend.startswith("-0.700")
    assert " +0.700 " in legend
