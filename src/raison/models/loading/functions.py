"""Functions, and objects that predict probabilities, as models."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeGuard, runtime_checkable

from raison.core.errors import InputError
from raison.models.adapters.asking import Asking, Function
from raison.models.adapters.blackbox import BlackBox

PROBES = ("It was a quiet pleasure.", "nothing new")
"""What a function is asked when it is loaded."""
PAIR_PROBES = (("Who wrote the play?", PROBES[0]), ("Is it new?", PROBES[1]))


@runtime_checkable
class Predictor(Protocol):
    """An object with probabilities for texts, such as a scikit-learn pipeline; it may name its classes (`classes_`)."""

    def predict_proba(self, texts: Any) -> Any:
        """A row of probabilities for each text."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """What a caller says of a function; see raison.load."""

    classes: Sequence[str] | None = None
    multi_label: bool = False
    pairs: bool = False
    batch: int = 64
    concurrency: int = 8
    name: str | None = None

    def __post_init__(self) -> None:
        for name in ("batch", "concurrency"):
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                raise InputError(f"{name} cannot be {value!r:.40}: give a whole number from 1 on.")
        if isinstance(self.classes, str):
            raise InputError(f"classes is the string '{self.classes:.40}': give a list, such as ['no', 'yes'].")

    @property
    def given(self) -> tuple[str, ...]:
        """The names of the arguments that say something."""
        usual = Agreement()
        others = [name for name in self.__slots__[1:] if getattr(self, name) != getattr(usual, name)]
        return (*(["classes"] if self.classes is not None else []), *others)


def from_predictor(predictor: Predictor, agreed: Agreement) -> BlackBox:
    """The model of an object's `predict_proba`, with the classes that it names itself."""
    own = getattr(predictor, "classes_", None) if agreed.classes is None else agreed.classes
    return asked(Asked(predictor.predict_proba, agreed.name or type(predictor).__name__, own), agreed)


def predicts(model: object) -> TypeGuard[Predictor]:
    """Whether an object has the method: in scikit-learn some of a class have it, and some refuse it."""
    return callable(getattr(model, "predict_proba", None))


def from_function(function: Function, agreed: Agreement) -> BlackBox:
    """The model of a function."""
    return asked(Asked(function, agreed.name or _name_of(function), agreed.classes), agreed)


@dataclass(frozen=True, slots=True)
class Asked:
    """A function, what it is called, and its classes as far as they are known."""

    function: Function
    name: str
    classes: Sequence[Any] | None
    why: str = ""
    """Why it is asked as a function, where there is more to it."""


def asked(found: Asked, agreed: Agreement) -> BlackBox:
    """The model, once the function has answered two short texts as agreed. Raises AnswerError, NonFiniteError."""
    if found.classes is None or not len(found.classes):
        raise InputError(
            f"the classes of {found.name} are not known: load(function, classes=['no', 'yes']) names its columns in "
            "order; a number without classes has one name, such as classes=['rating']."
        )
    classes = tuple(map(str, found.classes))
    if len(set(classes)) < len(classes):
        raise InputError(f"two classes of {found.name} have the same name ({', '.join(classes):.80}).")
    asking = Asking(found.function, found.name, classes, agreed.multi_label, agreed.batch, agreed.concurrency)
    asking.answers(PAIR_PROBES if agreed.pairs else PROBES)
    return BlackBox(asking, pairs=agreed.pairs, why=found.why)


def _name_of(function: Function) -> str:
    """A function's own name; of an object that can be called, its class's."""
    own = getattr(function, "__qualname__", None)
    return own if isinstance(own, str) else type(function).__name__
