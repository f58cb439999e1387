"""SNLI: 1,000 pairs of the test split, as TextFooler uses them."""

from raison.data.columns import ColumnLayout
from raison.data.named import NamedSet, Split
from raison.data.readers import columns

_LABELS = ("entailment", "neutral", "contradiction")
_READ = columns(ColumnLayout(((1,), (2,)), 0, width=3), _LABELS, ".tsv")

SET = NamedSet(
    folder="textfooler_1000s",
    labels=_LABELS,
    splits={"test": Split(("snli",), _READ, ("stanfordnlp/snli", "test"))},
    citation="Bowman et al., EMNLP 2015: A large annotated corpus for learning natural language inference",
    note="A sample of the Hub's split, of which pairs without an agreed label are left out.",
    # e-SNLI is SNLI with explanations.
    never_with=("esnli",),
)
