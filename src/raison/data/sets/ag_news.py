"""AG News: the topic of a news item, from its title and description."""

from raison.data.columns import ColumnLayout
from raison.data.named import NamedSet, Split
from raison.data.readers import TEXT_AND_LABEL, columns

SET = NamedSet(
    folder="ag_news",
    labels=("World", "Sports", "Business", "Sci/Tech"),
    splits={
        # The training file counts its classes from 0 and has title and description joined by a space; the test file
        # counts from 1 and has them in separate columns.
        "train": Split(
            ("train_5000.csv",), columns(TEXT_AND_LABEL, ("0", "1", "2", "3")), ("fancyzhx/ag_news", "train")
        ),
        "test": Split(
            ("test.csv",),
            columns(ColumnLayout(((1, 2),), 0, width=3), ("1", "2", "3", "4")),
            ("fancyzhx/ag_news", "test"),
        ),
    },
    citation="Zhang, Zhao and LeCun, NeurIPS 2015: Character-level convolutional networks for text classification",
    note="One of the training file's texts is in the test split too. The training file is a sample of the Hub's split.",
)
