"""Every row of explained files is in the explanations or among the rejected, and options are used or refused."""

from pathlib import Path

import pytest

import raison
from raison.core.errors import DataError
from raison.data.streams import Reading
from raison.runs.files.summary import of as summary_of
from tests.serving import words


def test_every_row_of_a_file_is_explained_or_rejected(tmp_path: Path) -> None:
    """Also rows in which no label reaches the threshold; each text's prediction counts once."""

    def classify(texts: list[str]) -> list[list[float]]:
        return [[0.9 if "good" in text else 0.1, 0.8 if "film" in text else 0.2] for text in texts]

    model = raison.load(classify, classes=["joy", "art"], multi_label=True)
    (tmp_path / "rows.txt").write_text("a good film\na film\nnothing\ngood\n")
    for out, method in (("together", "occlusion"), ("again", "random")):
        written = raison.explain_file(
            model, tmp_path / "rows.txt", tmp_path / out, method, target="each", format="jsonl", progress=False
        )
        assert [(row["row"], row["target"]) for row in written.rows()] == [
            (0, "joy"),
            (0, "art"),
            (1, "art"),
            (3, "joy"),
        ]
        assert [(one.row, one.reason) for one in written.rejected] == [
            (2, "no prediction in the text reaches the threshold")
        ]
        summary = summary_of(written)
        assert summary.predictions == {"joy": 2, "art": 1}
        assert summary.targets == {"art": 2, "joy": 2}
        assert summary.rejected == 1


@pytest.mark.parametrize(
    "reading",
    [
        {"text_column": "nosuch"},
        {"label_column": "nosuch"},
        {"id_column": "nosuch"},
        {"contrast_column": "nosuch"},
        {"text_column": "text", "pair_column": "nosuch"},
        {"delimiter": ";"},
        {"encoding": "latin-1"},
    ],
    ids=lambda one: list(one)[-1],
)
def test_named_data_has_known_columns(tmp_path: Path, reading: dict[str, str]) -> None:
    with pytest.raises(DataError, match="is a named data set with known columns"):
        raison.explain_file(words(), "sst2:dev", tmp_path / "out", "random", reading=Reading(**reading), progress=False)  # type: ignore[arg-type]
    assert not (tmp_path / "out").exists()
