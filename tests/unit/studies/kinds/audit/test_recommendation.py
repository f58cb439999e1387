"""What an audit recommends: faithful over the whole curve, on both counts, and cheap; and when auto follows it."""

import numpy as np
import pytest

from raison.core.results.scores import Comparison, Scores
from raison.runs.summary import Costs, MetricInfo, method_scores, metric_scores
from raison.studies.kinds.audit.recommendation import (
    COMPREHENSIVE,
    KEPT,
    RANDOM,
    SUFFICIENT,
    faithfulness,
    passes,
    recommended,
    unfit_for_auto,
)

TEXTS = 40


def row(method: str, comprehensive: float, sufficient: float, passes: int, texts: int = TEXTS) -> Scores:
    """A method's values, which scatter around these means, alike for all methods."""
    noise = np.random.default_rng(0).normal(0, 0.02, texts)
    own = np.random.default_rng(len(method)).normal(0, 0.02, texts)
    scores = [
        metric_scores(MetricInfo(COMPREHENSIVE, True), [(comprehensive + noise + own).tolist()]),
        metric_scores(MetricInfo(SUFFICIENT, False), [(sufficient + noise - own).tolist()]),
    ]
    return method_scores(method, scores, [Costs(passes, 0, 0.1)] * texts)


def table(*rows: Scores, texts: int = TEXTS) -> Comparison:
    """The rows, beside random scores whose comprehensiveness and sufficiency are 0.1 and 0.3."""
    rows = (*rows, row(RANDOM, 0.1, 0.3, 0, texts))
    return Comparison(rows, "model", "data", texts, "word", "probability", 0)


def advice(*rows: Scores, texts: int = TEXTS) -> tuple[str, str]:
    """All rows but the random one pass."""
    return recommended({one.method: one.evaluations.mean for one in rows}, table(*rows, texts=texts))


BEST = row("kernel_shap", 0.40, 0.00, 200)
"""Its lead is 0.3 on each count: a cheaper method may lose 0.06 on each, and 0.12 on both together."""
CHEAP = {
    "loses too much sufficiency, which its comprehensiveness makes up for": (row("occlusion", 0.47, 0.09, 20), False),
    "loses too much comprehensiveness, which its sufficiency makes up for": (row("occlusion", 0.31, -0.08, 20), False),
    "loses too much of both": (row("occlusion", 0.32, 0.08, 20), False),
    "loses as much as it may, which is not surely less": (row("occlusion", 0.345, 0.055, 20), False),
    "loses a little of both": (row("occlusion", 0.38, 0.02, 20), True),
    "loses hardly anything": (row("occlusion", 0.395, 0.005, 20), True),
}


@pytest.mark.parametrize("case", CHEAP)
def test_a_cheap_method_is_recommended_only_where_it_surely_keeps_the_lead(case: str) -> None:
    cheap, keeps = CHEAP[case]
    chosen, reason = advice(BEST, cheap)
    assert chosen == ("occlusion" if keeps else "kernel_shap")
    assert ("surely keep 80 % of the lead of kernel_shap" in reason) is keeps
    assert ("No cheaper one is sure to" in reason) is not keeps


def test_few_texts_do_not_show_that_a_cheap_method_keeps_the_lead() -> None:
    """The means are those of a method that is recommended with 40 texts."""
    few = 7
    assert advice(row("kernel_shap", 0.4, 0.0, 200, few), row("occlusion", 0.38, 0.02, 20, few), texts=few)[0] == (
        "kernel_shap"
    )


def test_the_only_method_needs_no_comparison() -> None:
    assert advice(BEST) == ("kernel_shap", "The most faithful of the methods that pass, at 200 passes a text.")


def test_the_cheapest_of_several_is_recommended() -> None:
    chosen, reason = advice(BEST, row("lime", 0.40, 0.001, 150), row("occlusion", 0.40, 0.0015, 20))
    assert chosen == "occlusion"
    assert reason.endswith("20 passes a text.")


def test_faithfulness_is_of_each_text() -> None:
    assert faithfulness(BEST)[3] == BEST[COMPREHENSIVE].values[3] - BEST[SUFFICIENT].values[3]


def test_auto_follows_enough_texts_and_a_comparison_with_kernel_shap() -> None:
    cheap = row("occlusion", 0.40, 0.0, 20)
    assert unfit_for_auto("occlusion", table(BEST, cheap)) == ""
    sampled = row("kernel_shap(samples=64)", 0.40, 0.00, 64)
    assert unfit_for_auto("occlusion", table(sampled, cheap)) == ""
    assert unfit_for_auto("occlusion", table(cheap)) == (
        "occlusion was not compared with kernel_shap, which auto falls back on"
    )
    few = table(row("kernel_shap", 0.4, 0.0, 200, 29), texts=29)
    assert unfit_for_auto("kernel_shap", few) == "it rests on 29 texts, of at least 30"


def test_a_method_that_keeps_exactly_the_least_rarely_passes_however_close_it_is_to_the_best() -> None:
    rng, passed = np.random.default_rng(3), 0
    for _ in range(60):
        lead = rng.normal(0.3, 0.2, TEXTS)
        noise = {name: rng.normal(0, 0.01, TEXTS) for name in ("own", "best")}
        values = {
            "kernel_shap": 0.1 + lead + noise["best"],
            "occlusion": 0.1 + KEPT * lead + noise["own"],
            RANDOM: np.full(TEXTS, 0.1),
        }
        rows = [
            method_scores(
                name,
                [
                    metric_scores(MetricInfo(COMPREHENSIVE, True), [of_it.tolist()]),
                    metric_scores(MetricInfo(SUFFICIENT, False), [(-of_it).tolist()]),
                ],
                [Costs(200 if name == "kernel_shap" else 20, 0, 0.1)] * TEXTS,
            )
            for name, of_it in values.items()
        ]
        known = Comparison(tuple(rows), "model", "data", TEXTS, "word", "probability", 0)
        passed += recommended({"kernel_shap": 200.0, "occlusion": 20.0}, known)[0] == "occlusion"
    # Of intervals of 95 %, 2.5 % lie above.
    assert passed <= 4


@pytest.mark.parametrize(("amount", "said"), [(1.0, "1 pass"), (0.0, "0 passes"), (1234.4, "1,234 passes")])
def test_passes_are_counted(amount: float, said: str) -> None:
    assert passes(amount) == said
