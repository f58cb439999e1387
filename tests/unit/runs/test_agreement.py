"""How alike the rows of a run are, against scipy and scikit-learn."""

import gzip
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.metrics.pairwise import cosine_similarity

from raison.core.errors import DataError, InputError
from raison.core.results.explanation import Explanation
from raison.numerics.statistics.bootstrap import mean_interval
from raison.runs.agreement import FILE, AgreementPair, add_part, agreement, pairs_in, read_agreement
from tests.explained import of_words

BASE = of_words("")


def explained(rows: list[np.ndarray]) -> list[Explanation]:
    return [replace(BASE, scores=tuple(row.tolist())) for row in rows]


def test_every_pair_of_rows_on_every_text() -> None:
    rng = np.random.default_rng(0)
    sizes = (5, 9, 23)
    scores = {name: [rng.normal(size=size) for size in sizes] for name in ("a", "b", "c")}
    found = agreement({name: explained(rows) for name, rows in scores.items()})
    assert [(pair["first"], pair["second"]) for pair in found] == [("a", "b"), ("a", "c"), ("b", "c")]
    for pair in found:
        both = list(zip(scores[pair["first"]], scores[pair["second"]], strict=True))
        assert pair["spearman"] == pytest.approx([spearmanr(a, b).statistic for a, b in both], abs=1e-6)
        assert pair["cosine"] == pytest.approx([cosine_similarity([a], [b])[0, 0] for a, b in both], abs=1e-6)
        # A fifth of 5, 9 and 23 units.
        tops = [set(np.argsort(-a)[:k]) & set(np.argsort(-b)[:k]) for (a, b), k in zip(both, (1, 2, 5), strict=True)]
        shares = [len(top) / k for top, k in zip(tops, (1, 2, 5), strict=True)]
        assert pair["top_k_overlap"] == pytest.approx(shares, abs=1e-6)


def test_what_is_undefined_is_null_and_left_out_of_means(tmp_path: Path) -> None:
    ordered, flat = np.array([3.0, 1.0, 2.0]), np.zeros(3)
    found = agreement({"a": explained([ordered, ordered, ordered]), "b": explained([ordered, -ordered, flat])})
    assert found[0]["spearman"] == [1.0, -1.0, None]
    (tmp_path / FILE).write_text(json.dumps({"pairs": found}))
    (pair,) = read_agreement(tmp_path)
    assert (pair.first, pair.second) == ("a", "b")
    assert (pair.spearman.mean, pair.spearman.low, pair.spearman.high) == pytest.approx(mean_interval([1.0, -1.0]))
    assert (pair.spearman.count, pair.cosine.count, pair.top_k_overlap.count) == (2, 2, 3)


def test_committed_agreement_is_compressed(tmp_path: Path) -> None:
    words = np.array([3.0, 1.0, 2.0])
    found = json.dumps({"pairs": agreement({"a": explained([words]), "b": explained([-words])})})
    (tmp_path / FILE).write_text(found)
    (tmp_path / FILE).unlink()
    (tmp_path / f"{FILE}.gz").write_bytes(gzip.compress(found.encode()))
    (pair,) = read_agreement(tmp_path)
    assert (pair.first, pair.second, pair.spearman.mean) == ("a", "b", -1.0)


def test_different_texts_cannot_be_compared() -> None:
    with pytest.raises(InputError, match="have different units"):
        agreement({"a": explained([np.ones(2)]), "b": explained([np.ones(3)])})


def test_a_folder_without_agreement_and_a_broken_one(tmp_path: Path) -> None:
    assert read_agreement(tmp_path) == ()
    (tmp_path / FILE).write_text('{"pairs": [{"first": "a"')
    with pytest.raises(DataError, match="cannot read .*agreement.json"):
        read_agreement(tmp_path)


PAIR = {"first": "a", "second": "b", "spearman": [1.0], "top_k_overlap": [None], "cosine": [0.5]}


@pytest.mark.parametrize(
    "written",
    [
        {"pairs": 3},
        {"pairs": [3]},
        {"pairs": [PAIR | {"first": ["a"]}]},
        {"pairs": [PAIR | {"cosine": []}]},
        {"pairs": [PAIR | {"cosine": ["0.5"]}]},
        {"pairs": [PAIR], "parts": 3},
        {"pairs": [], "parts": [{"texts": [0, 1], "pairs": [PAIR]}]},
        {"pairs": [], "parts": [{"texts": ["0"], "pairs": [PAIR]}]},
    ],
)
def test_agreement_that_was_changed_is_one_clear_line(tmp_path: Path, written: object) -> None:
    (tmp_path / FILE).write_text(json.dumps(written))
    with pytest.raises(DataError, match="cannot read .*agreement.json"):
        read_agreement(tmp_path)


def test_copied_parts_are_kept_once_beside_the_pairs(tmp_path: Path) -> None:
    whole, part = AgreementPair(**PAIR), AgreementPair(**PAIR | {"second": "c"})
    (tmp_path / FILE).write_text(json.dumps({"pairs": [whole]}))
    for _ in range(2):
        add_part(tmp_path, [4], [whole, part])
    assert pairs_in(tmp_path) == [whole]
    assert json.loads((tmp_path / FILE).read_text())["parts"] == [{"texts": [4], "pairs": [part]}]
