"""Randomised blocks and attacks on a model's explanations of some texts: the plan, and what is left out."""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from raison.core.errors import RaisonError
from raison.core.inputs.parts import Given, written
from raison.core.model import LanguageModel
from raison.explaining.settings import Settings
from raison.trust.operations import Operation, TrustOperations, TrustRequest


@dataclass(frozen=True, slots=True)
class RandomisationAsked:
    """`plan` is a raison.trust.randomisation.Randomisation."""

    texts: int
    plan: Any


@dataclass(frozen=True, slots=True)
class AttacksAsked:
    """`plans`: a raison.trust.attacks.EmbeddingAttack for each objective. `substitution` may be None."""

    texts: int
    plans: tuple[Any, ...]
    substitution: Any

    @property
    def operations(self) -> list[Operation]:
        """The kinds of attacks to make."""
        wanted: list[Operation] = ["embedding"] if self.plans else []
        return [*wanted, "substitution"] if self.substitution is not None else wanted


@dataclass(frozen=True, slots=True)
class TrustTrial:
    """How explanations by `methods`, named as in the records, are tested."""

    methods: tuple[str, ...]
    settings: Settings
    randomisation: RandomisationAsked | None
    attacks: AttacksAsked | None

    @property
    def texts(self) -> int:
        """The maximum number of texts that is needed."""
        return max(part.texts for part in (self.randomisation, self.attacks) if part is not None)

    def request(self, model: LanguageModel, texts: Sequence[Given], operation: Operation) -> TrustRequest:
        """The texts that an operation uses, with all methods."""
        part = self.randomisation if operation == "randomisation" else self.attacks
        some = texts[: part.texts if part is not None else 0]
        return TrustRequest(model, some, self.methods, self.settings.of_texts(range(len(some))))


def refused(trial: TrustTrial, operations: TrustOperations, model: LanguageModel, texts: Sequence[Given]) -> list[str]:
    """Reasons to refuse attacks before they begin: a k above a text's units, a model without word embeddings."""
    attacks, refusals = trial.attacks, []
    if attacks is None:
        return []
    for operation in attacks.operations:
        request = trial.request(model, texts, operation)
        left_out = operations.unable[operation](request)
        some = replace(request, methods=tuple(method for method in trial.methods if method not in left_out))
        try:
            if operation == "embedding" and some.methods:
                operations.attacked(some, attacks.plans, ())
            elif operation == "substitution":
                operations.substituted(some, attacks.substitution, ())
        except RaisonError as error:
            refusals.append(str(error))
    return list(dict.fromkeys(refusals))


def entry_of(
    trial: TrustTrial, operations: TrustOperations, model: LanguageModel, texts: Sequence[Given]
) -> dict[str, Any]:
    """A trial's entry in a header: the operations with their methods, and exclusions with reasons."""
    whole = "\n".join(str(written(text)) for text in texts).encode("utf-8", "surrogatepass")
    return {
        "texts": hashlib.sha256(whole).hexdigest()[:16],
        "randomisation": _randomisation(trial, operations, model, texts),
        "attacks": _attacks(trial, operations, model, texts),
    }


def _randomisation(
    trial: TrustTrial, operations: TrustOperations, model: LanguageModel, texts: Sequence[Given]
) -> dict[str, Any] | None:
    if trial.randomisation is None:
        return None
    request = trial.request(model, texts, "randomisation")
    left_out = operations.unable["randomisation"](request)
    return {
        **asdict(trial.randomisation.plan),
        "texts": len(request.texts),
        "blocks": operations.blocks(model),
        "methods": [method for method in trial.methods if method not in left_out],
        "left_out": left_out,
    }


def _attacks(
    trial: TrustTrial, operations: TrustOperations, model: LanguageModel, texts: Sequence[Given]
) -> dict[str, Any] | None:
    attacks = trial.attacks
    if attacks is None:
        return None
    request = trial.request(model, texts, "embedding")
    left_out = {operation: operations.unable[operation](request) for operation in attacks.operations}
    able = {operation: [method for method in trial.methods if method not in out] for operation, out in left_out.items()}
    variants = [
        {"attack": attack, "objective": plan.objective, "methods": able["embedding"]}
        for plan in attacks.plans
        for attack in ("embedding", "noise")
    ]
    if attacks.substitution is not None:
        variants.append({"attack": "substitution", "objective": "constrained", "methods": able["substitution"]})
    return {
        "texts": len(request.texts),
        "boundary": operations.boundary(request),
        "variants": variants,
        "left_out": left_out,
        "plans": [asdict(plan) for plan in attacks.plans],
        "substitution": None if attacks.substitution is None else asdict(attacks.substitution),
    }
