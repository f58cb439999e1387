"""SST-2, the binary Stanford Sentiment Treebank as in GLUE, its test split with labels."""

from raison.data.named import NamedSet, Split
from raison.data.readers import TEXT_AND_LABEL, columns

_READ = columns(TEXT_AND_LABEL, ("0", "1"))

# The files have no header: with a guessed layout a first line such as "text<TAB>1" would be lost.
SET = NamedSet(
    folder="sst2_glue",
    labels=("negative", "positive"),
    splits={
        "train": Split(("sentiment-train.tsv",), _READ, ("stanfordnlp/sst2", "train")),
        "dev": Split(("sentiment-dev.tsv",), _READ, ("stanfordnlp/sst2", "validation")),
        # GLUE hides the labels of its test split; this copy has those of the treebank.
        "test": Split(("sentiment-test.tsv",), _READ, ("SetFit/sst2", "test")),
    },
    citation="Socher et al., EMNLP 2013: Recursive deep models for semantic compositionality over a sentiment treebank",
    note="Most training rows are phrases of the training sentences; texts end with a space, as in GLUE.",
    never_with=("mr",),
)
