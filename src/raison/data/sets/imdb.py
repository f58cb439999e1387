"""IMDB, the large movie review data set (a balanced sample of it in the folder)."""

from raison.data.columns import ColumnLayout
from raison.data.named import NamedSet, Split
from raison.data.readers import columns

_READ = columns(ColumnLayout((("text",),), "label"), ("0", "1"))

SET = NamedSet(
    folder="imdb",
    labels=("negative", "positive"),
    splits={
        "train": Split(("train.jsonl",), _READ, ("stanfordnlp/imdb", "train")),
        "test": Split(("test.jsonl",), _READ, ("stanfordnlp/imdb", "test")),
    },
    citation="Maas et al., ACL 2011: Learning word vectors for sentiment analysis",
    note="Texts are unchanged: line breaks are written <br />. The folder's files are samples of the Hub's splits.",
)
