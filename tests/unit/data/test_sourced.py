"""Questions with known sources: what is gold is gold, and nothing else answers."""

import json
from itertools import islice
from pathlib import Path

import pytest

from raison.core.errors import DataError, UnknownNameError
from raison.core.targets.answer import Answer
from raison.data.questions import read_questions
from raison.data.sourced import NAMES, KnownSources, Passage, Passages, known_sources
from raison.data.sourced.articles import HELD_OUT, Article, ArticlePart, Paragraph, articles
from raison.data.sourced.exchanged import exchanged, sort_of
from raison.data.sourced.passages import among_others, has_words, readings
from raison.data.sourced.planted import planted
from raison.data.sourced.repeated_sources import repeated

NAMES_OF_PEOPLE = ("Ada Holm", "Bea Lind", "Carl Moss", "Dora Fenn", "Emil Roth", "Fay Stone", "Gus Wren")


def _paragraph(name: str, number: int) -> Paragraph:
    first = f"The {number}th day was cold. {name} opened shop number {number}."
    text = f"{first} Shop {number} was large. It closed at {number}."
    start = text.index(name)
    return Paragraph(text, ((f"Who opened shop number {number}?", Answer(start, start + len(name), name)),))


def _article(title: str, names: tuple[str, ...]) -> Article:
    return Article(title, tuple(_paragraph(name, number) for number, name in enumerate(names, 1)))


SHOPS = _article("Shops", NAMES_OF_PEOPLE)
MILLS = _article("Mills", ("Hal Ivers", "Ina Jarl", "Kit Lowe"))


def _said(known: KnownSources, passage: Passage) -> str:
    return known.sources[passage.source][passage.start : passage.end]


def test_the_gold_passage_alone_has_the_answer() -> None:
    found = list(among_others([SHOPS], Passages(4, 2)))
    assert len(found) == len(NAMES_OF_PEOPLE)
    for known in found:
        assert len(known.sources) == 5
        assert [name for name, text in known.sources.items() if has_words(text, known.answer)] == list(known.gold)
        assert _said(known, known.sentences[0]).startswith(known.answer)
        assert all(text.count(".") == 2 for text in known.sources.values())


def test_the_gold_passage_stands_anywhere_and_whole_paragraphs_are_whole() -> None:
    found = list(among_others([SHOPS], Passages(4, None)))
    places = {list(known.sources).index(known.gold[0]) for known in found}
    assert len(places) > 1
    texts = {paragraph.text for paragraph in SHOPS.paragraphs}
    assert all(text in texts for known in found for text in known.sources.values())


def test_articles_with_too_few_paragraphs_are_left_out() -> None:
    assert {known.subject for known in among_others([SHOPS, MILLS], Passages(3, 1))} == {"Shops"}
    with pytest.raises(DataError, match="give 1 or more"):
        Passages(0)


def test_what_is_drawn_depends_on_the_seed_and_the_question_alone() -> None:
    first = {known.question: known for known in among_others([SHOPS], Passages(3, 1), seed=3)}
    assert first == {known.question: known for known in among_others([MILLS, SHOPS], Passages(3, 1), seed=3)}
    assert first != {known.question: known for known in among_others([SHOPS], Passages(3, 1), seed=4)}


def test_readings_have_each_paragraph_once_and_only_questions_that_they_answer() -> None:
    found = list(readings([SHOPS], 2, 4, 8, seed=0))
    assert sorted(name for reading in found for name in reading.sources) == [f"p{n}" for n in range(1, 8)]
    for reading in found:
        assert all(any(has_words(text, answer) for text in reading.sources.values()) for _, answer in reading.asked)


@pytest.mark.parametrize(
    ("question", "answer", "sort"),
    [
        ("Who opened it?", "Ada Holm", "person"),
        ("Who opened it?", "the owner of the mill", None),
        ("Where is it?", "New Paltz", "place"),
        ("When was it?", "1921", "year"),
        ("How many?", "1,200", "number"),
        ("How many?", "85%", "number"),
        ("What is it?", "Tea", None),
    ],
)
def test_sorts_of_answers(question: str, answer: str, sort: str | None) -> None:
    assert sort_of(question, answer) == sort


def test_an_exchanged_answer_takes_the_place_of_the_old_one_everywhere() -> None:
    plain = {known.question: known for known in among_others([SHOPS], Passages(4, 2))}
    found = list(exchanged(plain.values(), [SHOPS, MILLS]))
    assert len(found) == len(plain)
    for known in found:
        old = plain[known.question]
        assert known.answer in ("Hal Ivers", "Ina Jarl", "Kit Lowe")
        assert not any(has_words(text, old.answer) for text in known.sources.values())
        assert _said(known, known.sentences[0]) == _said(old, old.sentences[0]).replace(old.answer, known.answer)
        assert known.sources == {n: text.replace(old.answer, known.answer) for n, text in old.sources.items()}


def test_questions_that_hold_their_answer_are_not_exchanged() -> None:
    known = KnownSources("Who is Ada Holm?", {"1": "Ada Holm.", "2": "Tea."}, "Ada Holm", ("1",), ())
    assert list(exchanged([known], [MILLS])) == []


@pytest.mark.parametrize("others", [4, 9])
def test_a_planted_fact_is_said_by_one_source(others: int) -> None:
    for known in islice(planted("single", others), 40):
        assert len(known.sources) == others + 1
        assert known.answer in _said(known, known.sentences[0])
        assert [n for n, text in known.sources.items() if has_words(text, known.answer)] == list(known.gold)


def test_combined_facts_need_both_sources() -> None:
    for known in islice(planted("combined", 4), 40):
        assert known.combined
        assert len(known.gold) == 2
        assert len(known.sources) == 5
        builder, fact = (_said(known, passage) for passage in known.sentences)
        person = " ".join(builder.rstrip(".").split()[-2:])
        assert fact.startswith(person)
        assert known.answer in fact
        assert person not in known.question
        assert known.answer not in builder


def test_contradicting_sources_differ_in_the_answer_alone() -> None:
    for known in islice(planted("contradicting", 4), 40):
        (gold,), (against,) = known.gold, known.against
        said = _said(known, known.sentences[0])
        assert known.answer in said
        assert said not in known.sources[against]
        before, after = said.split(known.answer)
        assert before in known.sources[against]
        assert after in known.sources[against]
        assert gold != against


@pytest.mark.parametrize("how", ["copy", "near copy"])
def test_repeated_sources_both_have_the_answer(how: str) -> None:
    plain = {known.question: known for known in among_others([SHOPS], Passages(4, 2))}
    for known in repeated(plain.values(), how):  # type: ignore[arg-type]
        first, second = known.gold
        assert len(known.sources) == 6
        assert known.answer in known.sources[second]
        assert (known.sources[first] == known.sources[second]) is (how == "copy")
        rest = {name: text for name, text in known.sources.items() if name != second}
        assert rest == plain[known.question].sources
        assert list(rest) == list(plain[known.question].sources)


def test_unknown_names_and_sources_are_refused() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'squad'"):
        known_sources("squat", 1)
    with pytest.raises(UnknownNameError):
        next(planted("double"))  # type: ignore[arg-type]
    with pytest.raises(DataError, match="unknown"):
        KnownSources("Who?", {"1": "Ada."}, "Ada", ("2",), ())


def test_questions_go_to_a_file_that_cite_reads(tmp_path: Path) -> None:
    found = known_sources("planted_single", 3)
    lines = [json.dumps(known.to_dict()) for known in found]
    path = tmp_path / "known.jsonl"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert [KnownSources.from_dict(json.loads(line)) for line in lines] == found
    read = read_questions(path)
    assert [(row.question, row.sources, row.answer) for row in read] == [
        (k.question, k.sources, k.answer) for k in found
    ]


@pytest.mark.data
def test_squad_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    root = Path(__file__).parents[3]
    if not (root / "../shared/data/squad").is_dir():
        pytest.skip("SQuAD is not beside the checkout (../shared/data)")
    monkeypatch.delenv("RAISON_DATA", raising=False)
    monkeypatch.chdir(root)
    parts: tuple[ArticlePart, ...] = ("train", "test", "xquad")
    titles = {part: {article.title for article in articles(part)} for part in parts}
    assert titles["test"] == set(HELD_OUT)
    assert len(titles["train"]) == 16
    assert len(titles["xquad"]) == 48
    assert titles["train"].isdisjoint(titles["test"] | titles["xquad"])
    for name in NAMES:
        found = known_sources(name, 5, Passages(9, 2))
        extra = 1 if name.endswith("copied") else 0
        assert [len(known.sources) for known in found] == [10 + extra] * 5
        assert all(known.answer in _said(known, known.sentences[-1]) for known in found)
