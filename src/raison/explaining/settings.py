"""Settings of explanations and of loading, shared by calls, study files and the command line."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any

from raison.core.inputs.unit import Granularity
from raison.core.internals.precision import Precision
from raison.core.settings.fields import Setting, check
from raison.core.targets.choices import Dtype, TargetSpec, listed, plain_number


def target_of(typed: str) -> TargetSpec:
    """A label, a class number, a comma-separated pair of these, or start, end and tag of an entity.

    Digits in double quotes are a label.
    """
    parts = [_class_of(part.strip()) for part in typed.split(",")]
    if len(parts) == 3 and isinstance(parts[0], int) and isinstance(parts[1], int):
        return parts[0], parts[1], str(parts[2])
    return (parts[0], parts[1]) if len(parts) == 2 else typed if len(parts) > 2 else parts[0]


def _class_of(typed: str) -> str | int:
    quoted = typed[1:-1] if len(typed) > 2 and typed[0] == typed[-1] == '"' else ""
    return quoted if quoted.isdecimal() else int(typed) if typed.isdecimal() else typed


UnitSetting = Annotated[
    Granularity,
    Setting("What receives a score: token, word, sentence or part (as named by the data).", options=("--unit", "-u")),
]
OfSetting = Annotated[
    str | None,
    Setting(
        "What is explained: probability (default), logit, log_odds, margin, log_probability; for a model with one "
        "number, that number is the logit and the default."
    ),
]
RemovalSetting = Annotated[str | None, Setting("What replaces a removed unit: mask, ellipsis, unk, pad, delete.")]
TruncateSetting = Annotated[bool, Setting("Explain only the beginning of a text that is too long.")]
DeviceSetting = Annotated[str | None, Setting("Where to put the model, such as cpu or cuda.")]
DtypeSetting = Annotated[Dtype | None, Setting("float32, bfloat16 or float16; the model's own by default.")]
PromptSetting = Annotated[
    str | None, Setting("Turns a language model into a classifier: a shipped prompt or a TOML file.")
]


DRAWS = 16
"""The number of random texts with which `cite` compares each source."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What is explained, whatever the method.

    `target` may be an array or a column of a table in place of a list. `of` None is the probability, or a model's one
    number. `removal` None is the first of the model's `removals`.

    `precision` applies only to the methods' perturbed texts: predictions, gradients and metrics keep the model's own.
    """

    unit: UnitSetting = "word"
    target: Annotated[
        TargetSpec,
        Setting(
            "Label to explain; two with a comma: this,not that. Default: predicted.", read=target_of, elsewhere=True
        ),
    ] = None
    of: OfSetting = None
    removal: RemovalSetting = None
    seed: Annotated[int, Setting("Seed of random methods.")] = 0
    truncate: TruncateSetting = False
    precision: Annotated[
        Precision, Setting("Precision for perturbed texts: float32 (the model's own) or bfloat16 (often faster).")
    ] = "float32"

    def keywords(self) -> dict[str, Any]:
        """The settings as arguments of `explain`, which has the same names."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    def of_texts(self, numbers: Sequence[int]) -> "Settings":
        """The settings for some of the texts, if a list has a target for each."""
        target = self.target
        return replace(self, target=[target[number] for number in numbers]) if isinstance(target, list) else self

    def __post_init__(self) -> None:
        object.__setattr__(self, "target", listed(self.target))
        object.__setattr__(self, "seed", plain_number(self.seed))
        check(self)


@dataclass(frozen=True, slots=True)
class ComparisonSettings:
    """Methods to compare, and metrics to evaluate them. `metrics` None are the default ones for the model's outputs."""

    methods: Annotated[
        tuple[str, ...], Setting('Comma-separated names or calls, such as "lime,kernel_shap(samples=64)"; or all.')
    ] = ("integrated_gradients", "kernel_shap", "lime", "occlusion")
    metrics: Annotated[
        tuple[str, ...] | None,
        Setting(
            "Comma-separated names or calls, or all; by default comprehensiveness, sufficiency, their AOPC and "
            "log_odds."
        ),
    ] = None
    seeds: Annotated[
        tuple[int, ...],
        Setting("Seed of random methods; several, such as 0,1,2, are averaged.", options=("--seed",)),
    ] = (0,)
    select: Annotated[
        tuple[str, ...],
        Setting("Metrics that each select one of a method's candidate maps per text; adds a control."),
    ] = ()
