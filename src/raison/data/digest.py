"""The identity of data, independent of the file that it came from."""

from raison.data.dataset import Dataset
from raison.jobs.identity import digest_of


def dataset_digest(data: Dataset) -> str:
    """The digest of the texts with their labels, rationales and answers, in their order, and the labels' names."""
    rows = [[row.text, row.label, row.rationales, row.answers] for row in data.rows]
    return digest_of([rows, data.labels])
