"""The functions of raison.trust, as a study of trust calls them."""

from collections.abc import Collection, Iterator

from raison.core.method import Method
from raison.methods import CATALOGUE
from raison.models.derived.backbone import backbone_of
from raison.trust import attacks, randomisation, substitution
from raison.trust.attack_settings import EmbeddingAttack
from raison.trust.operations import TrustOperations, TrustRequest
from raison.trust.records import AttackKey, Substituted
from raison.trust.substitution import Substitution

_WRITES = "attacks keep the predicted class, and a generative model predicts none"


def operations() -> TrustOperations:
    """The functions of raison.trust that do them."""
    return TrustOperations(
        settings={
            "randomisation": randomisation.Randomisation,
            "embedding": EmbeddingAttack,
            "substitution": Substitution,
        },
        similarities=lambda request, plan, done: randomisation.similarities(
            request.model,
            request.texts,
            request.methods,
            request.settings,
            plan,
            done=done,
            only=request.only,
        ),
        attacked=lambda request, plans, done: attacks.attacks(
            request.model, request.texts, _created(request), request.settings, plans, done=done
        ),
        substituted=_substituted,
        unable={
            "randomisation": _not_randomised,
            "embedding": _not_attacked,
            "substitution": _not_substituted,
        },
        boundary=_boundary,
        blocks=lambda model: 0 if randomisation.why_no_blocks(model) else randomisation.count_blocks(model),
    )


def _not_randomised(request: TrustRequest) -> dict[str, str]:
    if why := randomisation.why_no_blocks(request.model):
        return dict.fromkeys(request.methods, why)
    return randomisation.without_parameters(request.model, request.texts, request.methods, request.settings)


def _not_attacked(request: TrustRequest) -> dict[str, str]:
    if request.model.outputs == "statement":
        return dict.fromkeys(request.methods, _WRITES)
    return attacks.undifferentiable(request.model, _created(request))


def _not_substituted(request: TrustRequest) -> dict[str, str]:
    if request.model.outputs == "statement":
        return dict.fromkeys(request.methods, _WRITES)
    if backbone_of(request.model) is None:
        why = f"the model is {randomisation.outside(request.model)}, which has no embeddings of similar words"
        return dict.fromkeys(request.methods, why)
    why = substitution.irreplaceable(request.model, request.texts[0], request.settings)
    return dict.fromkeys(request.methods, why) if why else {}


def _boundary(request: TrustRequest) -> list[int]:
    if request.model.outputs == "statement":
        return []
    return attacks.boundary(request.model, request.texts, request.settings)


def _substituted(request: TrustRequest, plan: Substitution, done: Collection[AttackKey]) -> Iterator[list[Substituted]]:
    return substitution.substitutions(
        request.model, request.texts, _created(request), request.settings, plan, done=done, only=request.only
    )


def _created(request: TrustRequest) -> list[Method]:
    return [CATALOGUE.create(method) for method in request.methods]
