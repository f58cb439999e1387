"""The jobs of a run cover every text once, in an order that makes unfinished runs samples of their texts."""

from typing import Any

import pytest
from torch import Tensor

import raison
from raison.core.inputs.encoding import Encoding
from raison.judging.evaluate import measure_groups
from raison.judging.work import jobs_of
from raison.metrics.consistency import Consistency
from raison.runs.headers import RowHead, RunHead, SettingsHead
from raison.runs.run import Run
from tests.toy_capabilities import ToyStates
from tests.toys import Linear

TEXTS = ["good film", "not a terrible film .", "um wonderful film not bad", "bad", "good fine film . bad", "not good"]


def not_needed() -> Any:
    raise AssertionError("jobs are listed without a model")


def order(texts: int, together: int = 1) -> list[int]:
    """The first text of every chunk, in the order of the jobs."""
    rows, settings = (RowHead("r", "r", (0,)),), SettingsHead("word", "logit", 0, {})
    header = RunHead("1", "m", "d", texts, rows, (), settings, {}, {}, together=together)
    return [int(job.key.rpartition(" ")[2]) for job in jobs_of(not_needed, Run(header, None))]


def test_every_text_is_in_one_chunk_and_the_order_stays() -> None:
    assert sorted(order(100, 16)) == list(range(0, 100, 16))
    assert sorted(order(50)) == list(range(50))
    assert order(50) == order(50)


def test_the_first_half_is_of_both_halves_of_a_sorted_set() -> None:
    early = order(100)[:50]
    assert 15 <= sum(text < 50 for text in early) <= 35
    assert early != sorted(early)


def test_all_rows_and_seeds_share_the_hidden_states_of_their_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    states = ToyStates.hidden_states

    def counted(toy: ToyStates, encoding: Encoding) -> list[Tensor]:
        read.extend(encoding.texts)
        return states(toy, encoding)

    monkeypatch.setattr(ToyStates, "hidden_states", counted)
    table = raison.compare(
        Linear(), TEXTS, ["occlusion", "kernel_shap"], ["consistency(batch=3)"], seed=[0, 1], progress=False
    )
    assert sorted(read) == sorted(TEXTS)
    explanations = raison.explain(Linear(), TEXTS, "occlusion", progress=False)
    alone = raison.evaluate(Linear(), explanations, ["consistency(batch=3)"])
    assert table["occlusion"]["consistency(batch=3)"].values == alone["consistency(batch=3)"].values


def test_metrics_of_all_texts_predict_none_again(monkeypatch: pytest.MonkeyPatch) -> None:
    explanations = raison.explain(Linear(), TEXTS, "occlusion", progress=False)

    def predicting(*_given: Any) -> Any:
        raise AssertionError("the metric needs no prediction")

    monkeypatch.setattr(Linear, "masked_logits", predicting)
    assert len(measure_groups(Linear(), explanations, Consistency(batch=3), {})) == 2
