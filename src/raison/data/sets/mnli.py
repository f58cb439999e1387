"""MultiNLI: 1,000 pairs of each development set, as TextFooler uses them."""

from raison.data.columns import ColumnLayout
from raison.data.named import NamedSet, Split
from raison.data.readers import columns

_LABELS = ("entailment", "neutral", "contradiction")
_READ = columns(ColumnLayout(((1,), (2,)), 0, width=3), _LABELS, ".tsv")

SET = NamedSet(
    folder="textfooler_1000s",
    labels=_LABELS,
    splits={
        "matched": Split(("mnli_matched",), _READ, ("nyu-mll/glue:mnli", "validation_matched")),
        "mismatched": Split(("mnli_mismatched",), _READ, ("nyu-mll/glue:mnli", "validation_mismatched")),
    },
    citation="Williams, Nangia and Bowman, NAACL 2018: A broad-coverage challenge corpus; Jin et al., AAAI 2020",
    note="The folder's texts are tokenised samples of the Hub's splits.",
)
