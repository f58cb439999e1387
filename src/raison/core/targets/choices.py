"""Types of the names that calls accept, without torch."""

from numbers import Integral
from typing import Any, Literal, Protocol, TypeGuard, runtime_checkable

from raison.core.errors import InputError
from raison.core.inputs.missing import is_missing

Of = Literal["probability", "logit", "log_odds", "margin", "log_probability"]
NamedTarget = str | int | tuple[str | int | None, str | int | None]
"""What is explained at a position: a tag, a word, a word's number in the vocabulary, or a pair (this, not that)."""
PlacedTarget = tuple[int, NamedTarget] | tuple[int, int, NamedTarget]
"""The number of a mask and what is explained there, or a span of characters and its tag."""
SingleTarget = NamedTarget | PlacedTarget
TargetSpec = (
    None
    | SingleTarget
    | list[int]
    | list[str]
    | list[str | int]
    | list[SingleTarget]
    | list[int | None]
    | list[str | None]
    | list[SingleTarget | None]
)
"""None for the predicted class (or a model's one number), a label's name or index, a pair (this, not that), or a list
of each text's class or pair. In a pair and in a list, None is the predicted class.

For a question answering model, a string is a part of the context, and a list of strings has one for each text. For a
model that tags tokens or fills in masked words, a target also says where, see raison.core.targets.choosing.
"""
EACH = "each"
"""As a target: every label above a threshold, each with its own explanation."""
Explained = Literal["input", "prompt"]
"""What part of a prompted model's input receives scores: the text alone, or also the prompt's sentences and shots."""
Measure = Literal["cosine", "dot"]
"""How two texts' vectors are compared."""
Pooled = Literal["mean", "cls", "max", "lasttoken"]
"""How the states of a text's tokens become one vector, by the names that sentence-transformers gives them."""
Aggregation = Literal["none", "simple", "first", "average", "max"]
"""How tokens become entities, as in transformers' pipeline: "none" tags each token alone, "simple" joins neighbouring
tokens of one type, and the others first give each word one tag: that of its first token, of its tokens' mean
probabilities, or of its most confident token.
"""
Dtype = Literal["float32", "bfloat16", "float16", "auto"]


@runtime_checkable
class _Array(Protocol):
    def tolist(self) -> list[Any]: ...


def is_whole_number(value: object) -> TypeGuard[Integral]:
    """Whether it is a whole number, Python's or another library's. True and False are none."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def plain_number(value: Any) -> Any:
    """A whole number of another library, such as numpy's, as Python's own; other values as they are."""
    return int(value) if is_whole_number(value) else value


def for_each_text(spec: TargetSpec, count: int) -> list[Any]:
    """The target of each of so many texts: one for all, or a list with one for each. Raises InputError."""
    if not isinstance(spec, list):
        return [spec] * count
    if len(spec) != count:
        raise InputError(f"{len(spec)} targets for {count} texts: a list needs one for each text.")
    return list(spec)


def listed(target: Any) -> TargetSpec:
    """A caller's target: an array, a tensor or a column of a table as a list; others as they are.

    What a column lacks is None, and the whole numbers beside it, which it holds as floats, are whole again.
    """
    entries: Any = target.tolist() if isinstance(target, _Array) else target
    if entries is target or not isinstance(entries, list) or not any(map(is_missing, entries)):
        return entries
    return [
        None if is_missing(one) else int(one) if isinstance(one, float) and one.is_integer() else one for one in entries
    ]
