"""Does `decisive` find a shortcut that was planted in 1 % of the rows, and how often does it name a word wrongly?

Planted: a made-up word at the end of 10 of 1,000 sentences of SST-2, all of one class; a logistic regression on the
words learns from these sentences, and occlusion explains its prediction of each. Beside it the same word in as many
sentences of both classes in turn, from which there is nothing to learn. By chance: the same sentences with random
scores, in which no word decides more often than another; Holm's correction bounds the share of draws with any finding
by the level. Other words that decide, such as "great", are no false findings of a trained model: it reads them.
"""

import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from common import save
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import raison
from raison.core.results.explanation import Explanation
from raison.numerics.statistics.successes import share_interval
from raison.runs.words import LEVEL, decisive

ROWS, SHARE = 1000, 0.01
MODELS = 15
DRAWS = 200
WORD = "zyxel"
SPLIT = r"(?u)\S+"


def sentences(seed: int) -> tuple[list[str], list[int]]:
    """So many sentences of four words or more, with their labels."""
    data = raison.data.load("sst2", split="train", limit=20_000)
    pairs = list(zip(data.texts, data.class_indices(data.labels), strict=True))
    found = [(str(text), label) for text, label in pairs if len(str(text).split()) >= 4]
    drawn = random.Random(seed).sample(found, ROWS)
    return [text for text, _ in drawn], [label for _, label in drawn]


def with_word(texts: Sequence[str], labels: Sequence[int], classes: list[int], seed: int) -> list[str]:
    """The word at the end of 1 % of the texts, of these classes in turn."""
    rng, planted = random.Random(seed), list(texts)
    count = round(SHARE * len(texts))
    for label in classes * (count // len(classes)):
        rows = [row for row, own in enumerate(labels) if own == label and planted[row] == texts[row]]
        row = rng.choice(rows)
        planted[row] = f"{planted[row]} {WORD}"
    return planted


def explained(texts: Sequence[str], labels: Sequence[int]) -> list[Explanation]:
    """By occlusion, of a model that learned from these texts."""
    learned = make_pipeline(CountVectorizer(token_pattern=SPLIT), LogisticRegression(C=10.0, max_iter=500))
    learned.fit(texts, labels)
    model = raison.load(learned.predict_proba, classes=["negative", "positive"])
    return raison.explain(model, list(texts), "occlusion", removal="delete", progress=False)


def found_by(classes: list[int]) -> tuple[int, list[int]]:
    """In how many models the word was found, and how many words were found in each."""
    hits, named = 0, []
    for seed in range(MODELS):
        texts, labels = sentences(seed)
        words = {one.word for one in decisive(explained(with_word(texts, labels, classes, seed), labels))}
        hits += WORD in words
        named.append(len(words))
    return hits, named


def alarms() -> int:
    """Draws of random scores in which any word is found."""
    texts, labels = sentences(0)
    drawn, rng, found = explained(texts, labels), np.random.default_rng(0), 0
    for _ in range(DRAWS):
        scored = [_scored(e, rng) for e in drawn]
        found += bool(decisive(scored))
    return found


def _scored(e: Explanation, rng: np.random.Generator) -> Explanation:
    return replace(e, scores=tuple(rng.normal(size=len(e.units)).tolist()))


def main() -> None:
    """A line for each question."""
    rows: list[dict[str, object]] = []
    for name, classes in (("planted in one class", [1]), ("planted in both classes", [0, 1])):
        hits, named = found_by(classes)
        rows.append(_row(name, MODELS, hits) | {"words found": round(float(np.mean(named)), 1)})
    rows.append(_row(f"random scores, level {LEVEL}", DRAWS, alarms()) | {"words found": ""})
    save("shortcuts", rows)


def _row(name: str, runs: int, hits: int) -> dict[str, object]:
    low, high = share_interval(hits, runs)
    return {"sentences": name, "runs": runs, "found": hits, "share": hits / runs, "low": low, "high": high}


if __name__ == "__main__":
    main()
