"""Named data sets: folders that mimic each format with its traps."""

import hashlib
import json
from pathlib import Path

import pytest

from raison.core.errors import DataError, UnknownNameError
from raison.core.inputs.rationale import Span
from raison.data import Dataset, Row, Wanted, load, named
from raison.data.named import shared
from raison.studies.entries import StudyModel
from raison.studies.plans import learned_from

FIXED = ("ag_news", "emotion", "eraser_movies", "esnli", "imdb", "mr", "sst2")
ROOT = Path(__file__).parents[3]


def write(root: Path, name: str, content: str | bytes) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty data root that is found through the environment, away from any real data."""
    (tmp_path / "data").mkdir()
    monkeypatch.setenv("RAISON_DATA", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "data"


def test_every_set_states_what_a_user_needs() -> None:
    assert set(FIXED) <= set(named())
    for name, known in named().items():
        assert known.folder
        assert known.splits
        assert known.citation
        # Questions have answers and no classes.
        assert len(set(known.labels)) == len(known.labels) >= (0 if name == "squad" else 2)
        for other in known.never_with:
            assert name in named()[other].never_with, "sharing texts goes both ways"
        for split in known.splits.values():
            assert split.files
            assert split.hub is None or "/" in split.hub[0]


def test_sst2_has_no_header(root: Path) -> None:
    content = 'text of a film \t1\na dull , " quoted tale \t0\n'
    write(root, "sst2_glue/sentiment-test.tsv", content)
    digest = hashlib.sha256(content.encode()).hexdigest()
    rows = (Row("text of a film ", 1, 1), Row('a dull , " quoted tale ', 0, 2))
    assert load("sst2") == Dataset("sst2/test", rows, (), digest, ("negative", "positive"))


def test_mr_is_latin_1_and_split_by_line(root: Path) -> None:
    # 0x85 is a line end to str.splitlines, and no line end in the file.
    for end in ("neg", "pos"):
        lines = [f"{end} caf\xe9 \x85 number {number}" for number in range(1, 5332)]
        write(root, f"mr/rt-polarity.{end}", "".join(line + "\n" for line in lines).encode("latin-1"))
    splits = {split: load("mr", split=split) for split in ("train", "dev", "test")}
    assert [len(data) for data in splits.values()] == [8530, 1066, 1066]
    assert splits["train"].rows[:3] == (
        Row("neg caf\xe9 \x85 number 1", 0, 1),
        Row("pos caf\xe9 \x85 number 1", 1, 2),
        Row("neg caf\xe9 \x85 number 2", 0, 3),
    )
    assert splits["test"].rows[-1] == Row("pos caf\xe9 \x85 number 5331", 1, 10662)
    rows = [row for data in splits.values() for row in data.rows]
    assert [row.number for row in rows] == list(range(1, 10663))
    write(root, "mr/rt-polarity.pos", "pos\n" * 4800)
    with pytest.raises(DataError, match=r"rt-polarity\.pos has no line 4801"):
        load("mr")


def test_ag_news_counts_from_zero_in_one_file_and_from_one_in_the_other(root: Path) -> None:
    write(root, "ag_news/train_5000.csv", '"Rain in June It rains, ""much"".",0\n"A cup is won In the\ncity.",1\n')
    write(root, "ag_news/test.csv", '"1","Rain in June","It rains."\n"4","A chip","It is fast."\n')
    assert load("ag_news", split="train").rows == (
        Row('Rain in June It rains, "much".', 0, 1),
        Row("A cup is won In the\ncity.", 1, 2),
    )
    test = load("ag_news")
    assert test.rows == (Row("Rain in June It rains.", 0, 1), Row("A chip It is fast.", 3, 2))
    # Without the row of class 4 the first class is still the first.
    assert load("ag_news", limit=1).class_indices(("World", "Sports", "Business", "Sci/Tech")) == (0,)
    assert test.class_indices(("sports", "world", "sci/tech", "business")) == (1, 2)


@pytest.mark.parametrize("header", ["text;label_name\n", ""])
def test_emotion_has_a_header_and_semicolons_in_texts(root: Path, header: str) -> None:
    write(root, "emotion/val.txt", f"{header}i feel low; so low;sadness\ni feel loved;love\n")
    first = 2 if header else 1
    assert load("emotion", split="dev").rows == (
        Row("i feel low; so low", 0, first),
        Row("i feel loved", 2, first + 1),
    )


def test_imdb_texts_are_unchanged(root: Path) -> None:
    text = "A film.<br /><br />It is long."
    write(root, "imdb/test.jsonl", json.dumps({"file": "x_7.txt", "label": 1, "rating": 7, "text": text}) + "\n")
    assert load("imdb").rows == (Row(text, 1, 1),)


def test_tweets_and_labels_lie_side_by_side(root: Path) -> None:
    write(root, "tweeteval/emotion/val_text.txt", "a good\u2028day\nan odd day\n")
    write(root, "tweeteval/emotion/val_labels.txt", "1\n3\n")
    assert load("tweet_emotion", split="dev").rows == (Row("a good\u2028day", 1, 1), Row("an odd day", 3, 2))
    write(root, "tweeteval/emotion/val_labels.txt", "1\n")
    with pytest.raises(DataError, match=r"line 2: val_labels.txt has fewer lines"):
        load("tweet_emotion", split="dev")


def test_nli_labels_have_one_order_everywhere(root: Path) -> None:
    pair = "a man sleeps\ta man rests\n"
    write(root, "textfooler_1000s/mnli_matched", f"neutral\t{pair}entailment\t{pair}contradiction\t{pair}")
    write(root, "textfooler_1000s/snli", f"neutral\t{pair}entailment\t{pair}contradiction\t{pair}")
    header = "unique_key\tlabel\tpremise\thypothesis\texplanation1\texplanation2\texplanation3\n"
    rows = "".join(f"k{code}\t{code}\ta man sleeps\ta man rests\tx\ty\tz\n" for code in (0, 1, 2))
    write(root, "esnli/test.tsv", header + rows)
    for data in (load("mnli", split="matched"), load("snli"), load("esnli")):
        assert [data.labels[row.label] for row in data.rows] == ["neutral", "entailment", "contradiction"]
        assert data.texts == (("a man sleeps", "a man rests"),) * 3
    write(root, "esnli/test.tsv", rows)
    with pytest.raises(DataError, match="the column names"):
        load("esnli")


def highlighted(premise: list[list[object]], hypothesis: list[list[object]]) -> dict[str, object]:
    return {"text_explanation": "x", "premise_expl_tokens": premise, "hypothesis_expl_tokens": hypothesis}


def pair_with(*explanations: dict[str, object]) -> dict[str, object]:
    texts = {"premise": "A man sleeps.", "hypothesis": "A cat sleeps."}
    return {"id": "1", **texts, "label": "contradiction", "explanations": explanations}


def test_esnli_highlights_become_spans(root: Path) -> None:
    item = pair_with(highlighted([["man", 2], ["sleeps.", 6]], [["cat", 2]]), highlighted([], []))
    write(root, "esnli/highlights_dev1000.json", json.dumps([item]))
    data = load("esnli", split="dev_highlights")
    spans = (Span(2, 5, 0), Span(6, 13, 0), Span(2, 5, 1))
    assert data.rows == (Row(("A man sleeps.", "A cat sleeps."), 2, 1, (spans, ())),)
    assert data.name == "esnli/dev_highlights"
    assert data.has_rationales


@pytest.mark.parametrize("token", [["man", 3], ["woman", 2], ["", 2], ["man", None], ["man"]])
def test_a_highlight_that_is_not_in_its_text_is_named(root: Path, token: list[object]) -> None:
    items = [pair_with(highlighted([["man", 2]], [])), pair_with(highlighted([token], []))]
    write(root, "esnli/highlights_train988.json", json.dumps(items))
    with pytest.raises(DataError, match="line 2: not a pair with highlights"):
        load("esnli", split="train_highlights")
    data = load("esnli", split="train_highlights", skip_bad=True)
    assert [row.number for row in data.rows] == [1]
    assert [line.number for line in data.broken] == [2]
    write(root, "esnli/highlights_train988.json", "[{")
    with pytest.raises(DataError, match="is not JSON"):
        load("esnli", split="train_highlights")


def test_esnli_apart_shares_no_photograph_with_the_highlighted_pairs(root: Path) -> None:
    header = "unique_key\tlabel\tpremise\thypothesis\texplanation1\texplanation2\texplanation3\n"
    write(
        root, "esnli/test.tsv", f"{header}1.jpg#0r1n\t0\ta man\ta cat\tx\ty\tz\n9.jpg#4r1e\t1\ta cat\tcats\tx\ty\tz\n"
    )
    write(root, "esnli/dev.tsv", f"{header}2.jpg#0r1c\t2\ta dog\ta cat\tx\ty\tz\n")
    write(root, "esnli/highlights_dev1000.json", json.dumps([pair_with() | {"id": "9.jpg#1r1c"}]))
    assert load("esnli", split="apart").rows == (Row(("a man", "a cat"), 1, 1), Row(("a dog", "a cat"), 2, 2))
    write(root, "esnli/highlights_dev1000.json", "[{}]")
    with pytest.raises(DataError, match="pairs without an id"):
        load("esnli", split="apart")


DOCUMENT = "a film , so  bad\nthat it hurts .\nnever again\n"


def review(name: str, label: str, *pieces: tuple[int, int, str]) -> str:
    groups = [
        [{"docid": name, "start_token": start, "end_token": end, "start_sentence": 0, "end_sentence": 1, "text": text}]
        for start, end, text in pieces
    ]
    return json.dumps({"annotation_id": name, "classification": label, "evidences": groups, "query": "?"}) + "\n"


def test_eraser_evidences_become_spans(root: Path) -> None:
    # Across a line's end and two spaces; not sorted, for they stay as they are given.
    pieces = ((9, 11, "never again"), (4, 6, "bad that"), (3, 5, "so bad"))
    write(root, "eraser_movies/test.jsonl", review("n.txt", "NEG", *pieces) + review("p.txt", "POS"))
    write(root, "eraser_movies/docs/n.txt", DOCUMENT)
    write(root, "eraser_movies/docs/p.txt", DOCUMENT)
    data = load("eraser_movies")
    first, second = data.rows
    assert first.text == DOCUMENT.rstrip()
    assert [first.text[span.start : span.end] for span in first.rationales[0]] == [
        "never again",
        "bad\nthat",
        "so  bad",
    ]
    assert (first.label, second.label) == (0, 1)
    # The annotator of the second marked nothing.
    assert second.rationales == ((),)


def test_eraser_training_file_repeats_the_validation_rows(root: Path) -> None:
    write(root, "eraser_movies/train.jsonl", "".join(review(f"{n}.txt", "POS") for n in (1, 2, 3, 4)))
    write(root, "eraser_movies/val.jsonl", review("2.txt", "POS") + review("4.txt", "POS"))
    for number in (1, 2, 3, 4):
        write(root, f"eraser_movies/docs/{number}.txt", f"film {number}\n")
    train = load("eraser_movies", split="train")
    assert [(row.text, row.number) for row in train.rows] == [("film 1", 1), ("film 3", 3)]
    assert load("eraser_movies", split="dev").texts == ("film 2", "film 4")


def test_eraser_opens_only_the_reviews_that_are_wanted(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(root, "eraser_movies/test.jsonl", "".join(review(f"{n}.txt", "POS") for n in (1, 2, 3)))
    write(root, "eraser_movies/docs/1.txt", "film 1\n")
    write(root, "eraser_movies/docs/2.txt", "film 2\n")
    opened = []
    read_text = Path.read_text

    def noted(path: Path, encoding: str | None = None) -> str:
        opened.append(path.name)
        return read_text(path, encoding)

    monkeypatch.setattr(Path, "read_text", noted)
    assert len(load("eraser_movies", limit=2)) == 2
    assert opened == ["1.txt", "2.txt"]
    with pytest.raises(DataError, match=r"line 3: the review .*3\.txt is missing"):
        load("eraser_movies", limit=3)


@pytest.mark.parametrize("piece", [(3, 5, "so good"), (3, 99, "so bad"), (5, 5, ""), (-1, 2, "a film")])
def test_an_evidence_that_is_not_in_its_review_is_named(root: Path, piece: tuple[int, int, str]) -> None:
    write(root, "eraser_movies/test.jsonl", review("n.txt", "NEG", piece))
    write(root, "eraser_movies/docs/n.txt", DOCUMENT)
    with pytest.raises(DataError, match="line 1: not a review with evidences"):
        load("eraser_movies")


def test_a_label_outside_the_classes_is_named(root: Path) -> None:
    write(root, "sst2_glue/sentiment-dev.tsv", "fine \t1\nodd \t2\n")
    with pytest.raises(DataError, match="line 2: the label '2' is none of 0, 1"):
        load("sst2", split="dev")
    assert load("sst2", split="dev", limit=1).texts == ("fine ",)


def test_a_folder_is_known_by_its_name(root: Path) -> None:
    write(root, "sst2_glue/sentiment-test.tsv", "fine \t1\n")
    write(root, "tweeteval/emotion/test_text.txt", "fine\n")
    write(root, "tweeteval/emotion/test_labels.txt", "1\n")
    write(root, "textfooler_1000s/snli", "neutral\ta\tb\n")
    write(root, "else/where/sentiment-test.tsv", "poor \t0\n")
    assert load(root / "sst2_glue").name == "sst2/test"
    # "emotion" alone is another data set.
    assert load(str(root / "tweeteval/emotion")).name == "tweet_emotion/test"
    assert load("sst2", folder=root / "else/where").texts == ("poor ",)
    with pytest.raises(DataError, match=r"several data sets.*mnli, snli.*folder="):
        load(root / "textfooler_1000s")
    assert load("snli", folder=root / "textfooler_1000s").labels[1] == "neutral"
    with pytest.raises(DataError, match="not the folder of a known data set"):
        load(root / "else")


def test_the_default_place_is_beside_the_checkout(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkout = root.parent / "checkout"
    checkout.mkdir()
    write(root.parent, "shared/data/sst2_glue/sentiment-test.tsv", "fine \t1\n")
    monkeypatch.chdir(checkout)
    # A data root without this set's folder leaves the choice to the next place.
    assert load("sst2").texts == ("fine ",)
    monkeypatch.delenv("RAISON_DATA")
    assert load("sst2").texts == ("fine ",)
    monkeypatch.setenv("RAISON_DATA", str(root / "nowhere"))
    with pytest.raises(DataError, match="RAISON_DATA is set to .*nowhere"):
        load("sst2")


def test_missing_files_splits_and_wrong_settings(root: Path) -> None:
    (root / "sst2_glue").mkdir()
    with pytest.raises(DataError, match=r"sentiment-test\.tsv is missing"):
        load("sst2")
    with pytest.raises(UnknownNameError, match=r"split of sst2 'tset'. Did you mean 'test'\? Known: dev, test, train"):
        load("sst2", split="tset")
    with pytest.raises(DataError, match="known columns"):
        load("sst2", Wanted(text=0))
    with pytest.raises(DataError, match="not a named data set"):
        load("someone/some-data", folder=root)
    with pytest.raises(DataError, match="can only be read from its folder"):
        load("eraser_movies")


def test_named_sets_come_from_the_hub_where_there_is_no_folder(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets")
    made = datasets.Dataset.from_dict(
        {"premise": ["a", "b", "c"], "hypothesis": ["d", "e", "f"], "label": [2, -1, 0]},
    )
    asked = []

    def load_dataset(path: str, name: str | None, split: str) -> datasets.Dataset:
        asked.append((path, name, split))
        return made

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    data = load("snli")
    assert data.rows == (Row(("a", "d"), 2, 0), Row(("c", "f"), 0, 2))
    assert [line.number for line in data.broken] == [1]
    assert data.labels == ("entailment", "neutral", "contradiction")
    assert data.name == "snli/test (Hub: stanfordnlp/snli, test)"
    load("mnli", split="mismatched")
    assert asked == [("stanfordnlp/snli", None, "test"), ("nyu-mll/glue", "mnli", "validation_mismatched")]


@pytest.mark.parametrize("name", sorted(named()))
def test_who_shares_texts_is_not_tested_on_them(name: str) -> None:
    for other in named():
        reason = shared(f"{name}/train, texts of at most 20 words", f"{other}/test")
        assert (reason is not None) == (other in named()[name].never_with)
        assert reason is None or f"{other} shares texts with {name}" in reason
    assert shared("my.tsv", f"{name}/test") is None


@pytest.mark.parametrize(("model", "tested", "refused"), [("sst2", "mr", True), ("rotten_tomatoes", "sst2", True),
                                                          ("sst2", "sst2", False), ("imdb", "mr", False)])  # fmt: skip
def test_a_demo_model_is_not_tested_on_texts_that_it_learned_from(model: str, tested: str, refused: bool) -> None:
    found = learned_from(StudyModel(f"demo/{model}"), Dataset(f"{tested}/dev", ()))
    assert len(found) == refused
    assert learned_from(StudyModel("somebody/elses"), Dataset(f"{tested}/dev", ())) == []
