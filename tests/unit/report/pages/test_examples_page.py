"""Texts with their highest-scored units marked: the right ones, the text as it is, and only where it was asked for."""

import gzip
import json
import math
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

from raison.core.errors import DataError
from raison.core.inputs.unit import Text, Unit
from raison.core.results.explanation import Explanation
from raison.report.pages.examples import Example, Mark, markdown, marks
from raison.runs.run import Record, head_of, open_run
from raison.runs.summary import Costs
from raison.studies.data_loading import load_rows
from raison.studies.file import StudyError, read
from raison.studies.reports import write
from tests.explained import of_words

TEXTS = (
    "The  kettle sings,\tand nobody *minds*.",
    "<b>Loud</b> & long | but [never](dull) at $5 or ~6~.",
    "A short one",
    "One more that few will see",
)
ROWS = (
    ("lime", "lime", None, [0, 1]),
    ("random", "random", None, [0, 1]),
    ("random(draws=9)", "random(draws=9)", None, [0]),
    ("lime by sufficiency", "lime", "sufficiency", [0]),
    ("random(draws=9) by sufficiency", "random(draws=9)", "sufficiency", [0]),
)
PLAIN = ["lime", "lime by sufficiency"]
RUN = "small--reviews"


def explanation(text: Text, scores: list[float], unit: str = "word") -> Explanation:
    plain = of_words(text, pattern=r"\w+|[^\w\s]")
    count = len(plain.units)
    return replace(
        plain,
        unit=unit,
        scores=tuple((scores * count)[:count]),
        probabilities=(0.125, 0.875),
        value_full=0.875,
        method="lime",
    )


def made(row: int, seed: int, text: int) -> Explanation:
    """Scores without a tie that differ from row to row."""
    return explanation(TEXTS[text], [math.sin(3 * unit + row + 7 * seed) for unit in range(40)])


def expected(e: Explanation, top: int = 3) -> list[str]:
    """The words of the highest scores, the highest first, found one after the other."""
    chosen: list[int] = []
    for _ in range(top):
        chosen.append(max((unit for unit in range(len(e.units)) if unit not in chosen), key=e.scores.__getitem__))
    return [e.units[unit].text for unit in chosen]


def study_of(folder: Path, examples: str = "[examples]\n") -> Path:
    """A study's folder of one run, as a run leaves it."""
    folder.mkdir(parents=True)
    (folder / "study.toml").write_text(f'schema = 1\ntitle = "Made"\n{examples}', encoding="utf-8")
    header = {"schema": 1, "name": "made", "digest": "0", "versions": {}, "runs": [RUN], "limit": None}
    (folder / "study.json").write_text(json.dumps(header))
    rows = [dict(zip(("label", "method", "selected_by", "seeds"), row, strict=True)) for row in reversed(ROWS)]
    header = head_of(
        {
            "schema": 1,
            "raison": "0.1.0",
            "model": "demo/sst2",
            "data": "some/reviews.tsv",
            "texts": len(TEXTS),
            "texts_sha256": "0",
            "rows": rows,
            "metrics": [{"label": "sufficiency", "higher_is_better": False, "pool": "mean", "grouped": False}],
            "settings": {"unit": "word", "of": "probability", "seed": 0, "target": None},
            "versions": {},
        }
    )
    run = open_run(header, folder / RUN)
    for number, (label, _, _, seeds) in enumerate(ROWS):
        for key in [(seed, text) for seed in seeds for text in range(len(TEXTS))]:
            e = made(number, *key)
            record = Record(label, *key, (0.5,), Costs(5, 0, 0.1), e.target, e.prediction, len(e.units))
            run.add([(record, e)])
    return folder


class Marked(HTMLParser):
    """The rows of the page's tables: method, text, the words in bold and those underlined; and the links."""

    def __init__(self, markup: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[tuple[str, dict[str, str | None]]] = []
        self.rows: list[dict[str, Any]] = []
        self.links: list[str] = []
        self.tags: set[str] = set()
        self.feed(markup)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        attributes = dict(attrs)
        if tag in ("meta", "wbr"):
            return
        self.open.append((tag, attributes))
        if attributes.get("href"):
            self.links.append(str(attributes["href"]))
        if attributes.get("scope") == "row":
            self.rows.append({"method": "", "by": "", "text": "", "bold": [], "underlined": []})

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        tags = [tag for tag, _ in self.open]
        if any(attributes.get("scope") == "row" for _, attributes in self.open):
            self.rows[-1]["by" if "small" in tags else "method"] += data
        elif any(attributes.get("class") == "marked" for _, attributes in self.open):
            self.rows[-1]["text"] += data
            self.rows[-1]["bold"] += [data] if "b" in tags else []
            self.rows[-1]["underlined"] += [data] if "u" in tags else []


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(study_of(tmp_path_factory.mktemp("examples") / "study"), draw=False).parent


def page(report: Path) -> Marked:
    return Marked((report / "examples.html").read_text(encoding="utf-8"))


def test_the_highest_words_are_marked_in_the_text_as_it_is(report: Path) -> None:
    rows = page(report).rows
    assert len(rows) == len(PLAIN) * len(TEXTS)
    places = {label: number for number, (label, *_) in enumerate(ROWS)}
    # The header names the rows in another order than the records are written in.
    asked = [(text, label) for text in range(len(TEXTS)) for label in reversed(PLAIN)]
    for row, (text, label) in zip(rows, asked, strict=True):
        e = made(places[label], 0, text)
        words = expected(e)
        assert row["text"] == TEXTS[text]
        assert sorted(row["bold"]) == sorted(words)
        assert row["underlined"] == words[:1]
        assert row["method"] + row["by"].replace("selected", "") == label


def test_markdown_reads_as_the_page_does(report: Path) -> None:
    shown = MarkdownIt("commonmark").enable("table").render((report / "examples.md").read_text(encoding="utf-8"))
    cells = [re.findall(r"<td>(.*?)</td>", line, re.DOTALL) for line in re.findall(r"<tr>.*?</tr>", shown, re.DOTALL)]
    rows = [line for line in cells if line]
    assert len(rows) == len(page(report).rows)
    for (data, prediction, model, method, by, text), row in zip(rows, page(report).rows, strict=True):
        assert (data, prediction, model) == ("some/reviews.tsv", "positive 87.5 %", "demo/sst2")
        assert (method, by) == (row["method"], row["by"].removeprefix("selected by ") or "–")
        assert plain(text) == " ".join(row["text"].split())
        assert [plain(word) for word in re.findall(r"<strong>(.*?)</strong>", text)] == row["bold"]
        assert [plain(word) for word in re.findall(r"<u>(.*?)</u>", text)] == row["underlined"]


def plain(markup: str) -> str:
    found: list[str] = []
    parser = HTMLParser()
    parser.handle_data = found.append  # type: ignore[method-assign]
    parser.feed(markup)
    parser.close()
    return "".join(found)


@pytest.mark.parametrize("words", [("un", "believ", "able"), ("stale", ",", "the"), ("(", "a", ")")])
@pytest.mark.parametrize("scores", [[3.0, 2.0, 1.0], [1.0, 2.0, 3.0], [0.0, 2.0, 1.0]])
def test_marks_inside_a_word_are_markdown_too(tmp_path: Path, words: tuple[str, ...], scores: list[float]) -> None:
    ends = [sum(map(len, words[: place + 1])) for place in range(3)]
    units = tuple(Unit(end - len(word), end, word) for word, end in zip(words, ends, strict=True))
    e = replace(explanation("".join(words), [0.0]), units=units, scores=tuple(scores), unit="token")
    for top in (1, 2, 3):
        table = markdown([[Example(0, "lime", None, e)]], "d", top)
        text = re.findall(r"<td>(.*?)</td>", MarkdownIt("commonmark").enable("table").render(table))[5]
        assert plain(text) == e.text
        order = sorted(range(3), key=lambda unit: -scores[unit])[:top]
        assert [plain(one) for one in re.findall(r"<strong>(.*?)</strong>", text)] == [words[i] for i in sorted(order)]


def test_of_equal_scores_the_earlier_is_marked_and_no_number_that_is_none() -> None:
    [found] = marks(explanation("a b c d e", [0.0, 1.0, math.nan, 1.0, 1.0]), 2)
    assert found == (
        Mark("a"),
        Mark(" "),
        Mark("b", 1),
        Mark(" "),
        Mark("c"),
        Mark(" "),
        Mark("d", 2),
        Mark(" "),
        Mark("e"),
    )
    [found] = marks(explanation("a b", [-3.0, -2.0]), 1)
    assert found == (Mark("a"), Mark(" "), Mark("b", 1))


def test_white_space_of_a_unit_is_not_marked() -> None:
    e = replace(explanation("so be it", [0.0]), units=(Unit(0, 2, "so"), Unit(2, 5, " be"), Unit(5, 8, " it")))
    [found] = marks(replace(e, scores=(0.0, 2.0, -1.0), unit="token"), 1)
    assert found == (Mark("so"), Mark(" "), Mark("be", 1), Mark(" it"))


def test_both_texts_of_a_pair_have_marks() -> None:
    first, second = marks(explanation(("a b", "c d"), [1.0, 4.0, 3.0, 2.0]), 2)
    assert first == (Mark("a"), Mark(" "), Mark("b", 1))
    assert second == (Mark("c", 2), Mark(" "), Mark("d"))


def test_the_page_is_safe_and_every_link_leads_somewhere(report: Path) -> None:
    markup = (report / "examples.html").read_text(encoding="utf-8")
    assert "default-src 'none'" in markup
    assert not re.search(r"https?:|@import|url\([^#]|<link|<iframe|<script|\bsrc=", markup)
    for name in ("examples.html", "index.html"):
        links = Marked((report / name).read_text(encoding="utf-8")).links
        assert links
        for link in links:
            assert (report / link.partition("#")[0]).exists(), link
    assert {"examples.html", "examples.md"} <= set(Marked((report / "index.html").read_text(encoding="utf-8")).links)
    assert f"texts/{RUN}/0001.html" in page(report).links
    assert {"caption", "thead", "tbody"} <= page(report).tags


def test_what_the_study_asks_for_is_shown(tmp_path: Path) -> None:
    asked = (
        '[examples]\ntop = 1\ntexts = 2\nrows = ["random", "lime by sufficiency", "random(draws=9) by sufficiency"]\n'
    )
    rows = page(write(study_of(tmp_path / "study", asked), draw=False).parent).rows
    assert [row["text"] for row in rows] == [TEXTS[0]] * 3 + [TEXTS[1]] * 3
    assert [row["method"] for row in rows] == ["random", "lime", "random(draws=9)"] * 2
    assert all(len(row["bold"]) == 1 and row["bold"] == row["underlined"] for row in rows)
    assert rows[0]["bold"] == expected(made(1, 0, 0), 1)


def test_mistakes_alone_are_shown_if_they_are_asked_for(tmp_path: Path) -> None:
    folder = study_of(tmp_path / "study", "[examples]\ntexts = 1\nmispredicted = true\n")
    path = folder / RUN / "records.jsonl"
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    lines = [{key: value for key, value in line.items() if key != "crc32"} for line in lines]
    wrong = [line | {"prediction": "other"} if line["text"] in (2, 3) else line for line in lines]
    path.write_text("".join(json.dumps(line) + "\n" for line in wrong), encoding="utf-8")
    # The first one, although two texts that the model is right about come before it.
    assert {row["text"] for row in page(write(folder, draw=False).parent).rows} == {TEXTS[2]}


def test_another_class_than_the_predicted_one_is_named(tmp_path: Path) -> None:
    folder = study_of(tmp_path / "study")
    path = folder / RUN / "explanations.jsonl"
    text = path.read_text(encoding="utf-8").replace('"target": "positive"', '"target": "negative"')
    path.write_text(re.sub(r', "crc32": "\w+"}$', "}", text, flags=re.MULTILINE), encoding="utf-8")
    write(folder, draw=False)
    assert "explained: probability of negative" in (folder / "report/examples.html").read_text(encoding="utf-8")
    assert "(explained: probability of negative)" in (folder / "report/examples.md").read_text(encoding="utf-8")


def test_packed_explanations_serve_as_well(tmp_path: Path, report: Path) -> None:
    folder = study_of(tmp_path / "study")
    path = folder / RUN / "explanations.jsonl"
    path.with_name("explanations.jsonl.gz").write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()
    again = write(folder, draw=False).parent
    assert (again / "examples.html").read_bytes() == (report / "examples.html").read_bytes()


def test_without_explanations_the_report_says_what_is_missing(tmp_path: Path) -> None:
    folder = study_of(tmp_path / "study")
    (folder / RUN / "explanations.jsonl").unlink()
    index = write(folder, draw=False)
    assert "pages of single texts and of examples need explanations.jsonl" in index.read_text(encoding="utf-8")
    assert not list(index.parent.glob("examples.*"))
    assert "examples.html" not in Marked(index.read_text(encoding="utf-8")).links


def test_a_study_that_does_not_ask_has_no_page(tmp_path: Path) -> None:
    index = write(study_of(tmp_path / "study", ""), draw=False)
    assert not list(index.parent.glob("examples.*"))
    assert "examples.html" not in Marked(index.read_text(encoding="utf-8")).links


FILE = """schema = 1
title = "A small one"
methods = ["occlusion", "random(draws=3)"]
metrics = ["comprehensiveness"]
select = ["comprehensiveness"]

[models.one]
name = "demo/sst2"

[data.reviews]
source = "reviews.tsv"

[examples]
"""
MISTAKES = {
    "tpo = 3": "[examples]: unknown key 'tpo'. Did you mean 'top'?",
    "top = 0": "[examples]: top is 0; give a whole number of at least 1.",
    'texts = "all"': "[examples]: texts is 'all'; give a whole number of at least 1.",
    'rows = "random"': "[examples]: rows is 'random'; give a list of texts in quotes.",
    "rows = []": "[examples]: rows is empty; leave it out to show all rows but random.",
    'rows = ["random", "random"]': "[examples]: rows: random is named twice; remove one.",
    'rows = ["oclusion"]': "[examples]: unknown row 'oclusion'. Did you mean 'occlusion'?",
    'rows = ["occlusion by comprehensiveness"]': "unknown row 'occlusion by comprehensiveness'. Did you mean",
    'rows = ["random(draws=3) by sufficiency"]': "Did you mean 'random(draws=3) by comprehensiveness'?",
    'rows = ["random(draws=1)"]': "[examples]: the records call the row 'random(draws=1)' 'random'; write it so.",
}


@pytest.mark.parametrize(("line", "said"), MISTAKES.items(), ids=list(MISTAKES))
def test_a_mistake_in_the_study_file_is_named(tmp_path: Path, line: str, said: str) -> None:
    path = tmp_path / "study.toml"
    path.write_text(FILE + line)
    with pytest.raises(StudyError) as caught:
        read(path)
    [found] = caught.value.mistakes
    assert said in found


def test_rows_that_the_study_has_can_be_named(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(FILE + 'rows = ["occlusion", "random", "random(draws=3) by comprehensiveness"]\ntexts = 4\n')
    assert read(path).text.endswith("texts = 4\n")


def test_data_beside_the_study_file_are_found_from_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder, text in (("study", "beside"), ("elsewhere", "another")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "reviews.tsv").write_text(f"text\tlabel\n{text}\tpositive\n")
    (tmp_path / "study" / "study.toml").write_text(FILE)
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert load_rows(read("../study/study.toml").spec.grid.data["reviews"], None).texts == ("beside",)
    (tmp_path / "study" / "reviews.tsv").unlink()
    assert load_rows(read("../study/study.toml").spec.grid.data["reviews"], None).texts == ("another",)
    (tmp_path / "elsewhere" / "reviews.tsv").unlink()
    with pytest.raises(DataError, match="is not a file"):
        load_rows(read("../study/study.toml").spec.grid.data["reviews"], None)
