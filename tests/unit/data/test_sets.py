"""The named data sets themselves, where they lie beside the checkout: sizes, classes, spans, shared texts."""

import json
from collections import Counter
from pathlib import Path

import pytest

from raison.data import load, named

ROOT = Path(__file__).parents[3]


SIZES = {
    "sst2": {"train": 67349, "dev": 872, "test": 1821},
    "mr": {"train": 8530, "dev": 1066, "test": 1066},
    "imdb": {"train": 5000, "test": 3000},
    "ag_news": {"train": 5000, "test": 7600},
    "emotion": {"train": 16000, "dev": 2000, "test": 2000},
    "esnli": {"train_highlights": 988, "dev_highlights": 1000, "dev": 9842, "test": 9824, "apart": 16517},
    "eraser_movies": {"train": 1600, "dev": 200, "test": 200},
    "tweet_emotion": {"train": 3257, "dev": 374, "test": 1421},
    "tweet_sentiment": {"dev": 2000, "test": 12284},
    "mnli": {"matched": 1000, "mismatched": 1000},
    "snli": {"test": 1000},
}


@pytest.fixture
def real(monkeypatch: pytest.MonkeyPatch) -> None:
    if not (ROOT / "../shared/data").is_dir():
        pytest.skip("the labelled data sets are not beside the checkout (../shared/data)")
    monkeypatch.delenv("RAISON_DATA", raising=False)
    monkeypatch.chdir(ROOT)


@pytest.mark.data
@pytest.mark.usefixtures("real")
@pytest.mark.parametrize("name", sorted(SIZES))
def test_real_sizes_and_classes(name: str) -> None:
    for split, size in SIZES[name].items():
        data = load(name, split=split)
        assert len(data) == size
        assert data.broken == ()
        counts = Counter(row.label for row in data.rows)
        assert sorted(counts) == list(range(len(data.labels)))
        if name in ("mr", "imdb", "eraser_movies") or (name, split) == ("ag_news", "test"):
            assert len(set(counts.values())) == 1
        assert data.class_indices(data.labels) == tuple(row.label for row in data.rows)


@pytest.mark.data
@pytest.mark.usefixtures("real")
@pytest.mark.parametrize(("split", "share", "unmarked"), [("train", 0.09, 1), ("dev", 0.07, 0), ("test", 0.30, 0)])
def test_real_eraser_spans_are_their_evidences(split: str, share: float, unmarked: int) -> None:
    data = load("eraser_movies", split=split)
    data.require_rationales()
    assert sum(row.rationales == ((),) for row in data.rows) == unmarked
    lines = (ROOT / "../shared/data/eraser_movies" / f"{split.replace('dev', 'val')}.jsonl").read_text().splitlines()
    shares = []
    for row in data.rows:
        evidences = [piece for group in json.loads(lines[row.number - 1])["evidences"] for piece in group]
        texts = [row.text[span.start : span.end].split() for span in row.rationales[0]]
        assert texts == [piece["text"].split() for piece in evidences]
        shares.append(sum(len(text) for text in texts) / len(row.text.split()))
    # The mean over the reviews, as the data's own notes count it.
    assert sum(shares) / len(shares) == pytest.approx(share, abs=0.01)
    assert {row.text for row in data.rows}.isdisjoint(load("eraser_movies", split="dev").texts) == (split != "dev")


@pytest.mark.data
@pytest.mark.usefixtures("real")
@pytest.mark.parametrize(("split", "annotators"), [("train_highlights", 1), ("dev_highlights", 3)])
def test_real_esnli_highlights_are_words(split: str, annotators: int) -> None:
    data = load("esnli", split=split)
    assert {len(row.rationales) for row in data.rows} == {annotators}
    for row in data.rows:
        for span in (span for rationale in row.rationales for span in rationale):
            text = row.text[span.segment]
            assert text[span.start : span.end].split() == [text[span.start : span.end]]
            assert not text[: span.start] or text[span.start - 1].isspace()
            assert not text[span.end :] or text[span.end].isspace()
    assert {span.segment for row in data.rows for rationale in row.rationales for span in rationale} == {0, 1}


@pytest.mark.data
@pytest.mark.usefixtures("real")
def test_real_sets_that_share_texts_say_so() -> None:
    def words(texts: tuple[object, ...]) -> set[str]:
        return {"".join(str(text).lower().split()) for text in texts}

    assert len(words(load("mr").texts) & words(load("sst2", split="train").texts)) > 100
    assert "mr" in named()["sst2"].never_with
