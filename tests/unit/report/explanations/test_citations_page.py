"""Pages and terminal views of citations."""

import json
import re

import pytest

import raison
from raison.core.errors import InputError
from raison.report.explanations.citations_page import fragment, page
from tests.unit.explaining.test_cite import SOURCES, cite


def test_the_page_has_what_its_script_needs():
    c = cite(judge=lambda source, statement: statement[:4] in source)
    shown = page([c, c])
    assert shown.count('<article class="raison citations">') == 2
    states = json.loads(re.search(r'<script type="application/json">(.*?)</script>', shown)[1])
    assert len(states["palette"]) == 41
    for i, row in enumerate(c.scores):
        order = sorted(range(3), key=lambda j, row=row: row[j])
        assert sorted(range(3), key=lambda j, i=i: states["scores"][i][j]) == order
        assert [told.partition(",")[2].split(",")[0].strip() for told in states["told"][i]] == [
            check.light for check in c.checks[i]
        ]
    # Every sentence stands in the page once for each article, with its number.
    for number, sentence in enumerate(c.sentences):
        assert len(re.findall(f'data-sentence="{number}"[^>]*>{re.escape(sentence.text)}<', shown)) == 2
    assert "://" not in shown


def test_texts_are_escaped_everywhere():
    nasty = {"<b>x</b>": "owls hunt at night . <script>alert(1)</script>", "port": SOURCES["port"]}
    c = cite(sources=nasty)
    for shown in (c.to_html(), fragment(c), c._repr_html_()):
        assert "<script>alert" not in shown
        assert "<b>x</b>" not in shown
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in shown
    assert "<script" not in fragment(c)


def test_saved_and_shown(tmp_path, capsys):
    c = cite(method="context_cite(ablations=16, resamples=20)", draws=2)
    assert c.save(tmp_path / "c.html").read_text("utf-8") == c.to_html()
    assert raison.Citations.from_json(c.save(tmp_path / "c.json").read_text("utf-8")) == c
    with pytest.raises(InputError, match="html or .json"):
        c.save(tmp_path / "c.png")
    raison.show(c)
    shown = capsys.readouterr().out
    assert "log-odds of each statement" in shown
    assert " to " in shown


def test_a_statement_from_memory_is_marked():
    c = cite(answer="Brandt founded the port . unheard words", statements=[(0, 25), (26, 39)])
    for shown in (str(c), c.to_html(), fragment(c)):
        assert "memory or from the question" in re.sub(r"\s+", " ", shown)
