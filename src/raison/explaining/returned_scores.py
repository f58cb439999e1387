"""What a method returned, checked before it is cut and padded: a mistake in a method must not become an explanation."""

from torch import Tensor

from raison.core.errors import AnswerError
from raison.core.method import Method, Property
from raison.core.problem import Problem
from raison.core.registry import name_of


def checked(scores: object, problem: Problem, method: Method, maps: bool) -> Tensor:
    """The scores, without their graph, on the CPU; (maps, batch, scored) if several `maps` are expected.

    Raises AnswerError unless they are a tensor with a row for every text and a column for every unit, or token.
    """
    tokenwise = Property.TOKENWISE in method.properties
    encoding = problem.encoding
    width = encoding.input_ids.shape[1] if tokenwise else max(encoding.unit_counts)
    expected = f"{'maps x ' if maps else ''}{len(encoding)} texts x {width} {'tokens' if tokenwise else 'units'}"
    function = f"{type(method).__name__}.{'candidates' if maps else 'attribute'}"
    if not isinstance(scores, Tensor):
        found = f"of type {type(scores).__name__}"
    elif scores.ndim != 2 + maps or tuple(scores.shape[-2:]) != (len(encoding), width) or not len(scores):
        found = f"of shape {' x '.join(map(str, scores.shape)) or 'none'}"
    else:
        return scores.detach().cpu()
    raise AnswerError(
        f"{name_of(method)} returned scores {found}: {function} has to return a tensor of {expected}, as many as the "
        "longest text has."
    )
