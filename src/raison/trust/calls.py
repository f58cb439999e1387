"""The work of raison.trust, as a study of trust calls it."""

from collections.abc import Collection, Iterator

from raison.core.errors import UnsupportedError
from raison.core.method import Method
from raison.core.model import LanguageModel
from raison.methods import CATALOGUE
from raison.models.adapters.blackbox.function import BlackBox
from raison.models.adapters.classifier import Classifier
from raison.models.stack.blocks import find_blocks
from raison.trust import attacks, randomisation, substitution
from raison.trust.attack_settings import EmbeddingAttack
from raison.trust.records import AttackKey, Substituted
from raison.trust.substitution import Substitution
from raison.trust.works import Request, Works


def works() -> Works:
    """That of raison.trust."""
    return Works(
        settings={
            "randomisation": randomisation.Randomisation,
            "embedding": EmbeddingAttack,
            "substitution": Substitution,
        },
        similarities=lambda request, plan, done: randomisation.similarities(
            _classifier(request.model), request.texts, request.methods, request.settings, plan, done=done
        ),
        attacked=lambda request, plans, done: attacks.attacks(
            request.model, request.texts, _created(request), request.settings, plans, done=done
        ),
        substituted=_substituted,
        unable={
            "randomisation": _not_randomised,
            "embedding": lambda request: attacks.undifferentiable(request.model, _created(request)),
            "substitution": _not_substituted,
        },
        boundary=lambda request: attacks.boundary(request.model, request.texts, request.settings),
        blocks=lambda model: 0 if isinstance(model, BlackBox) else len(find_blocks(_classifier(model).core)),
    )


def _not_randomised(request: Request) -> dict[str, str]:
    if isinstance(request.model, BlackBox):
        return dict.fromkeys(request.methods, "the model is a function, whose parameters are not known")
    return randomisation.without_parameters(
        _classifier(request.model), request.texts, request.methods, request.settings
    )


def _not_substituted(request: Request) -> dict[str, str]:
    if isinstance(request.model, BlackBox):
        return dict.fromkeys(request.methods, "the model is a function, which has no embeddings of similar words")
    return {}


def _substituted(request: Request, plan: Substitution, done: Collection[AttackKey]) -> Iterator[list[Substituted]]:
    return substitution.substitutions(
        request.model, request.texts, _created(request), request.settings, plan, done=done
    )


def _created(request: Request) -> list[Method]:
    return [CATALOGUE.create(method) for method in request.methods]


def _classifier(model: LanguageModel) -> Classifier:
    if not isinstance(model, Classifier):
        raise UnsupportedError(
            f"{model.name} cannot be in a study of trust",
            ["its parameters are not known"],
            "Give one that raison.load loads.",
        )
    return model
