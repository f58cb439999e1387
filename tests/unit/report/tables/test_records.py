"""The parts of a page, and the template that knows them by their names."""

import re
from typing import get_args

from raison.report.style.markup import TEMPLATES
from raison.report.tables.records import HeadedExplanation, Part


def test_the_template_of_studies_knows_every_part_by_its_name() -> None:
    """A name that no part has would leave the part out without a word. Explanations have templates of their own."""
    assert TEMPLATES.loader is not None
    source, *_ = TEMPLATES.loader.get_source(TEMPLATES, "study.html")
    assert {*re.findall(r'kind\("(\w+)"\)', source)} == {
        part.__name__ for part in get_args(Part) if part is not HeadedExplanation
    }
