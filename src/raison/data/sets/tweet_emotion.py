"""TweetEval, emotion: the emotion of a tweet, four classes."""

from collections.abc import Iterator
from pathlib import Path

from raison.data.named import NamedSet, Split
from raison.data.readers import TEXT_AND_LABEL, beside, labelled
from raison.data.rows import Entry

_HUB = "cardiffnlp/tweet_eval:emotion"


def _read(paths: tuple[Path, ...]) -> Iterator[Entry]:
    return labelled(beside(*paths), TEXT_AND_LABEL, ("0", "1", "2", "3"))


SET = NamedSet(
    folder="tweeteval/emotion",
    labels=("anger", "joy", "optimism", "sadness"),
    splits={
        "train": Split(("train_text.txt", "train_labels.txt"), _read, (_HUB, "train")),
        "dev": Split(("val_text.txt", "val_labels.txt"), _read, (_HUB, "validation")),
        "test": Split(("test_text.txt", "test_labels.txt"), _read, (_HUB, "test")),
    },
    citation="Barbieri et al., Findings of EMNLP 2020: TweetEval; Mohammad et al., SemEval 2018, task 1",
)
