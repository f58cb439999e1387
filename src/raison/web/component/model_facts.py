"""The facts about a model that a page or a widget needs: its classes, its methods, and a quick method."""

from dataclasses import asdict, dataclass

from raison.combining.advice import advised
from raison.core.inputs.unit import PART, SPLITS
from raison.core.model import LanguageModel
from raison.explaining.diagnosis import methods_on
from raison.methods import CATALOGUE
from raison.models.adapters.writing.writer import Writer

QUICK = ("deep_lift", "attn_lrp", "decompx", "generic_attention")
"""Methods of one to three passes; the first that works is used while a text is being typed."""

SHOWN = 200
"""Classes that are named, at most."""


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """A model as it is offered. `unable` gives the reasons for unavailable methods; `quick` is None if no quick method
    works.
    """

    name: str
    outputs: str
    classes: tuple[str, ...]
    class_count: int
    strings: int
    units: tuple[str, ...]
    max_tokens: int | None
    removals: tuple[str, ...]
    methods: tuple[str, ...]
    unable: dict[str, str]
    quick: str | None
    advised: str | None
    """The method that an audit of this exact model recommended."""
    chats: bool = False
    """Whether it writes and has a chat template."""

    def to_dict(self) -> dict[str, object]:
        """Plain JSON values."""
        return asdict(self)


def facts_of(name: str, model: LanguageModel | Writer) -> ModelFacts:
    """The facts of a model that is offered under a name."""
    unable = _unable(model)
    able = tuple(method for method in CATALOGUE.names if method not in unable)
    quick = next((method for method in QUICK if method in able), None)
    if isinstance(model, Writer):
        units = (*SPLITS, PART) if model.chats else SPLITS
        return ModelFacts(name, "text", (), 0, 1, units, model.max_tokens, (), able, unable, quick, None, model.chats)
    return ModelFacts(
        name=name,
        outputs=model.outputs,
        classes=model.classes[:SHOWN],
        class_count=len(model.classes),
        strings=model.strings,
        units=SPLITS,
        max_tokens=model.max_tokens,
        removals=model.removals,
        methods=able,
        unable=unable,
        quick=quick,
        advised=advised(model),
    )


def _unable(model: LanguageModel | Writer) -> dict[str, str]:
    """Why methods do not work on the model with their default settings."""
    return {name: "; ".join(reasons) for name, reasons in methods_on(model).items() if reasons}
