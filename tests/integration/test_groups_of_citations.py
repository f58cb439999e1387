"""Methods that note another number of groups than there are sources."""

from dataclasses import dataclass

import pytest

from raison.core.errors import AnswerError
from raison.methods.hierarchical_occlusion import HierarchicalOcclusion
from raison.methods.occlusion import Occlusion
from tests.unit.explaining.test_cite import cite


@dataclass(frozen=True)
class Grouping(HierarchicalOcclusion):
    """Notes the score of one group, however many there are."""

    def attribute(self, problem, rngs):
        scores = HierarchicalOcclusion.attribute(self, problem, rngs)
        problem.note("groups", [[0.5]] * len(problem.encoding))
        return scores


@dataclass(frozen=True)
class Spread(Occlusion):
    """Notes the interval of one group, however many there are."""

    def attribute(self, problem, rngs):
        problem.note("group_intervals", [[[0.0, 1.0]]] * len(problem.encoding))
        return Occlusion.attribute(self, problem, rngs)


@pytest.mark.parametrize(("method", "note"), [(Grouping(), "groups"), (Spread(), "group_intervals")])
def test_every_source_has_its_group(method, note):
    with pytest.raises(AnswerError, match=rf"{type(method).__name__} gives 1 '{note}' for 3 sources: its"):
        cite(method=method)
