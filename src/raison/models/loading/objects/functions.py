"""Functions, and objects that predict probabilities, as models."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Protocol, TypeGuard, runtime_checkable

from raison.core.errors import InputError
from raison.core.settings.fields import Setting, mistakes_in, refuse
from raison.models.adapters.blackbox.asking import Asking, Function
from raison.models.adapters.blackbox.function import BlackBox

PROBES = ("It was a quiet pleasure.", "nothing new")
"""The texts on which a function is checked when it is loaded."""
PAIR_PROBES = (("Who wrote the play?", PROBES[0]), ("Is it new?", PROBES[1]))


@runtime_checkable
class Predictor(Protocol):
    """An object that predicts probabilities, such as a scikit-learn pipeline; `classes_` may name its classes."""

    def predict_proba(self, texts: Any) -> Any:
        """A row of probabilities for each text."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """The caller's settings for a function; see raison.load."""

    classes: Sequence[str] | None = None
    multi_label: bool = False
    pairs: bool = False
    batch: Annotated[int, Setting(least=1)] = 64
    concurrency: Annotated[int, Setting(least=1)] = 8
    name: str | None = None

    def __post_init__(self) -> None:
        refuse(mistakes_in(Agreement, {name: getattr(self, name) for name in ("batch", "concurrency")}))
        if isinstance(self.classes, str):
            raise InputError(f"classes is the string '{self.classes:.40}': give a list, such as ['no', 'yes'].")
        if not isinstance(self.classes, Iterable | None):
            raise InputError(f"classes is {self.classes!r:.40}: give a list, such as ['no', 'yes'].")
        if isinstance(self.classes, Mapping):
            raise InputError(
                "classes is a mapping: give a list in the order of the columns, such as [id2label[0], id2label[1]]."
            )
        if isinstance(self.classes, set | frozenset):
            raise InputError("classes is a set, which has no order: give a list in the order of the columns.")

    @property
    def given(self) -> tuple[str, ...]:
        """The names of the arguments that were given."""
        usual = Agreement()
        others = [name for name in self.__slots__[1:] if getattr(self, name) != getattr(usual, name)]
        return (*(["classes"] if self.classes is not None else []), *others)


def from_predictor(predictor: Predictor, agreed: Agreement) -> BlackBox:
    """The model of an object's `predict_proba`, with the object's own class names."""
    name = agreed.name or type(predictor).__name__
    own = getattr(predictor, "classes_", None)
    if isinstance(own, list) and own and not isinstance(own[0], str | int):
        raise InputError(
            f"{name} has several outputs, and its predict_proba returns an array for each: give a function that "
            "returns one row of probabilities for each text, with multi_label=True if they do not exclude each other."
        )
    if own is None and agreed.classes is None:
        raise InputError(
            f"{name} has no classes_: fit it first, or name its classes, load(object, classes=['no', 'yes'])."
        )
    if getattr(_last_step(predictor), "multilabel_", False):
        agreed = replace(agreed, multi_label=True)
    classes = own if agreed.classes is None else agreed.classes
    named = [] if classes is None else [*map(str, classes)]
    columns = named if own is None else [*map(str, own)]
    if named != columns and sorted(named) == sorted(columns):
        raise InputError(
            f"classes= has the names of {name}.classes_ in another order than the columns of predict_proba "
            f"({', '.join(columns):.80}): leave classes= out, or give other names in that order."
        )
    return black_box_of(AskedFunction(predictor.predict_proba, name, classes), agreed)


def _last_step(predictor: Predictor) -> object:
    """The classifier of a scikit-learn pipeline, or the object itself."""
    steps = getattr(predictor, "steps", None)
    return steps[-1][-1] if isinstance(steps, list) and steps else predictor


def predicts(model: object) -> TypeGuard[Predictor]:
    """Whether an object has the method; in scikit-learn this may differ between instances of a class."""
    return callable(getattr(model, "predict_proba", None))


def from_function(function: Function, agreed: Agreement) -> BlackBox:
    """The model of a function."""
    return black_box_of(AskedFunction(function, agreed.name or _name_of(function), agreed.classes), agreed)


@dataclass(frozen=True, slots=True)
class AskedFunction:
    """A function, its name, and its classes if known."""

    function: Function
    name: str
    classes: Sequence[Any] | None
    why: str = ""
    """Why the model is used as a function, if it is more than a function."""


def black_box_of(options: AskedFunction, agreed: Agreement) -> BlackBox:
    """The model, after a check of the function on two short texts. Raises AnswerError, NonFiniteError."""
    if options.classes is None or not len(options.classes):
        raise InputError(
            f"the classes of {options.name} are not known: load(function, classes=['no', 'yes']) names its columns in "
            "order; for a single number, give one name, such as classes=['rating']."
        )
    classes = tuple(map(str, options.classes))
    if len(set(classes)) < len(classes):
        raise InputError(f"two classes of {options.name} have the same name ({', '.join(classes):.80}).")
    asking = Asking(options.function, options.name, classes, agreed.multi_label, agreed.batch, agreed.concurrency)
    asking.answers(PAIR_PROBES if agreed.pairs else PROBES)
    return BlackBox(asking, strings=1 + agreed.pairs, why=options.why)


def _name_of(function: Function) -> str:
    """The name of a function, or of a callable object's class."""
    name = getattr(function, "__qualname__", None)
    return name if isinstance(name, str) else type(function).__name__
