"""What an audit recommends: faithful over the whole curve, on both counts, and cheap."""

import numpy as np
import pytest

from raison.core.results.scores import Comparison, Scores
from raison.runs.summary import Costs, MetricInfo, method_scores, metric_scores
from raison.studies.kinds.audit.results import COMPREHENSIVE, SUFFICIENT, MethodAudit, faithfulness, recommendation
from raison.trust.tables import summary

TEXTS = 40


def row(method: str, comprehensive: float, sufficient: float, passes: int) -> Scores:
    """A method's values, which scatter around these means, alike for all methods."""
    noise = np.random.default_rng(0).normal(0, 0.02, TEXTS)
    own = np.random.default_rng(len(method)).normal(0, 0.01, TEXTS)
    scores = [
        metric_scores(MetricInfo(COMPREHENSIVE, True), [(comprehensive + noise + own).tolist()]),
        metric_scores(MetricInfo(SUFFICIENT, False), [(sufficient + noise - own).tolist()]),
    ]
    return method_scores(method, scores, [Costs(passes, 0, 0.1)] * TEXTS)


def advice(*rows: Scores) -> tuple[str | None, str]:
    judged = [MethodAudit(r.method, "green", (), summary(faithfulness(r)), r.evaluations.mean, 0.1) for r in rows]
    return recommendation(judged, Comparison(rows, "model", "data", TEXTS, "word", "probability", 0))


BEST = row("kernel_shap", 0.40, 0.00, 200)
CHEAP = {
    "worse at sufficiency, which its comprehensiveness makes up for": (row("occlusion", 0.445, 0.05, 20), False),
    "worse at comprehensiveness, which its sufficiency makes up for": (row("occlusion", 0.35, -0.045, 20), False),
    "worse at both": (row("occlusion", 0.35, 0.05, 20), False),
    "alike on both": (row("occlusion", 0.40, 0.001, 20), True),
}


@pytest.mark.parametrize("case", CHEAP)
def test_a_cheap_method_is_as_faithful_only_where_it_is_worse_on_no_count(case: str) -> None:
    cheap, alike = CHEAP[case]
    chosen, reason = advice(BEST, cheap)
    assert chosen == ("occlusion" if alike else "kernel_shap")
    assert ("As faithful as kernel_shap" in reason) is alike


def test_only_methods_that_the_chosen_one_is_not_worse_than_are_named() -> None:
    """The cheapest is compared with the best; another one that is as good as the best may still beat the cheapest."""
    other = row("lime", 0.40, 0.001, 150)
    chosen, reason = advice(BEST, other, row("occlusion", 0.40, 0.0015, 20))
    assert chosen == "occlusion"
    assert "kernel_shap" in reason
    worse = row("occlusion", 0.395, 0.1, 20)
    assert advice(BEST, other, worse)[0] != "occlusion"
