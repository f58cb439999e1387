"""TweetEval, sentiment: negative, neutral or positive tweets."""

from collections.abc import Iterator
from pathlib import Path

from raison.data.named import NamedSet, Split
from raison.data.readers import TEXT_AND_LABEL, beside, labelled
from raison.data.rows import Entry

_HUB = "cardiffnlp/tweet_eval:sentiment"


def _read(paths: tuple[Path, ...]) -> Iterator[Entry]:
    return labelled(beside(*paths), TEXT_AND_LABEL, ("0", "1", "2"))


SET = NamedSet(
    folder="tweeteval/sentiment",
    labels=("negative", "neutral", "positive"),
    splits={
        "train": Split(("train_text.txt", "train_labels.txt"), _read, (_HUB, "train")),
        "dev": Split(("val_text.txt", "val_labels.txt"), _read, (_HUB, "validation")),
        "test": Split(("test_text.txt", "test_labels.txt"), _read, (_HUB, "test")),
    },
    citation="Barbieri et al., Findings of EMNLP 2020: TweetEval; Rosenthal, Farra and Nakov, SemEval 2017, task 4",
    note="The shared folder has no training split; the Hub has.",
)
