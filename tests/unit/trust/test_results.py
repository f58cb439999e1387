"""How many records a run of a study of trust has, by its header."""

from itertools import islice

from raison.trust.records import Attacked, BlockSimilarity
from raison.trust.results import AttackedHead, RandomisedHead, TrustHead, TrustRun, VariantHead

VARIANTS = (
    VariantHead("embedding", "constrained", ("lime", "saliency")),
    VariantHead("substitution", "unconstrained", ("lime",)),
)


def run_of(texts: int, draws: int) -> TrustRun:
    randomised = RandomisedHead(texts, ("lime", "saliency"), ("cascading", "independent"), draws, 3, {})
    attacked = AttackedHead(texts, (1, 1, 10**9), VARIANTS, {})
    similarities = [
        BlockSimilarity(method, "cascading", blocks, 3, draw, text, 1.0, 1.0, 1.0)
        for method in ("lime", "other")
        for blocks in (0, 1, 4)
        for draw in (0, 10**9)
        for text in (0, 10**9)
    ]
    attacks = [
        Attacked(method, "substitution", "unconstrained", text, 1, 0.0, 0.0, 0.0, 1, True)
        for method in ("lime", "saliency")
        for text in (0, 1, 10**9)
    ]
    known = {one.key: one for one in similarities}, {one.key: one for one in attacks}
    return TrustRun(TrustHead("t", "m", "d", "d", randomised, attacked), *known)


def test_counts_are_those_of_the_keys() -> None:
    run = run_of(texts=3, draws=2)
    similarities, attacks = list(run.wanted_similarities()), list(run.wanted_attacks())
    assert run.wanted == len(similarities) + len(attacks) == 2 * 2 * 3 * 2 * 3 + 3 * 2
    assert run.missing == run.wanted - 2


def test_counts_take_no_time() -> None:
    run = run_of(texts=10_000_000, draws=10_000_000)
    assert len(list(islice(run.wanted_similarities(), 5))) == 5
    assert run.wanted == 2 * 2 * 3 * 10**14 + 3 * (10**7 - 1)
    assert run.missing == run.wanted - 2
