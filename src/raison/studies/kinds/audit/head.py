"""The request of an audit, as its header states it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from raison.core.settings.fields import Setting
from raison.runs.headers import Count, ModelHead
from raison.studies.folder import StudyHead
from raison.trust.results import TrustHead


@dataclass(frozen=True, slots=True)
class EstimateHead:
    """The estimated seconds of the audit."""

    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditHead(StudyHead):
    """The request of an audit. `unable` gives the reasons for missing default methods, `about` describes the model.

    `number` is the name of the number of a model of one number. `contrasts`: the prediction is explained against
    another class of each text. `others` counts answers that were left out because they are not the model's own,
    `repeats` repeated texts, `empty` texts without an entity; `identity` has the hashes of the model, its texts and the
    settings. Older versions wrote the seconds of jobs (`spent`) here.
    """

    name: str = ""
    number: str = ""
    others: Annotated[int, Setting(least=0)] = 0
    repeats: Annotated[int, Setting(least=0)] = 0
    empty: Annotated[int, Setting(least=0)] = 0
    contrasts: bool = False
    digest: str = ""
    model: str
    data: str
    of: str
    unit: str
    texts: Count
    parameters: Annotated[int, Setting(least=0)]
    blocks: Count
    methods: tuple[str, ...]
    unable: Mapping[str, str]
    trust: TrustHead
    about: ModelHead = ModelHead()  # noqa: RUF009
    estimate: EstimateHead | None = None
    identity: Mapping[str, str] = field(default_factory=dict)
    spent: Mapping[str, float] = field(default_factory=dict)
