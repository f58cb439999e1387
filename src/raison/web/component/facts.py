"""What a page or a widget needs to know of a model before it asks: its classes, its methods, which of them is quick."""

from dataclasses import asdict, dataclass

from raison.core.errors import RaisonError
from raison.core.inputs.unit import SPLITS
from raison.core.model import LanguageModel
from raison.core.targets.outputs import Outputs
from raison.methods import CATALOGUE

QUICK = ("deep_lift", "attn_lrp", "decompx", "generic_attention")
"""Methods of one to three passes, the first that works is taken while a text is being typed."""


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """A model as it is offered. `quick` is None where no method of few passes works."""

    name: str
    outputs: Outputs
    classes: tuple[str, ...]
    strings: int
    units: tuple[str, ...]
    methods: tuple[str, ...]
    quick: str | None

    def to_dict(self) -> dict[str, object]:
        """Plain JSON values."""
        return asdict(self)


def facts_of(name: str, model: LanguageModel) -> ModelFacts:
    """The facts of a model that is offered under a name."""
    able = tuple(method for method in CATALOGUE.names if _works(method, model))
    quick = next((method for method in QUICK if method in able), None)
    return ModelFacts(name, model.outputs, model.classes, model.strings, SPLITS, able, quick)


def _works(name: str, model: LanguageModel) -> bool:
    """Whether the method works on the model with its default settings."""
    method = CATALOGUE.create(name)
    if method.lacking(model):
        return False
    try:
        method.check(model)
    except RaisonError:
        return False
    return True
