"""The work of raison.trust, as a study of trust calls it."""

from collections.abc import Collection, Iterator

from raison.core.errors import UnsupportedError
from raison.core.method import Method
from raison.core.model import LanguageModel
from raison.methods import CATALOGUE
from raison.models.adapters.classifier import Classifier
from raison.models.stack.blocks import find_blocks
from raison.trust import attacks, randomisation, substitution
from raison.trust.attack_settings import EmbeddingAttack
from raison.trust.attacks import Key
from raison.trust.records import Substituted
from raison.trust.substitution import Substitution
from raison.trust.works import Job, Works


def works() -> Works:
    """That of raison.trust."""
    return Works(
        settings={
            "randomisation": randomisation.Randomisation,
            "embedding": EmbeddingAttack,
            "substitution": Substitution,
        },
        similarities=lambda job, plan, done: randomisation.similarities(
            _classifier(job.model), job.texts, job.methods, job.settings, plan, done=done
        ),
        attacked=lambda job, plans, done: attacks.attacks(
            job.model, job.texts, _created(job), job.settings, plans, done=done
        ),
        substituted=_substituted,
        unable={
            "randomisation": lambda job: randomisation.without_parameters(
                _classifier(job.model), job.texts, job.methods, job.settings
            ),
            "embedding": lambda job: attacks.undifferentiable(job.model, _created(job)),
            "substitution": lambda job: {},
        },
        boundary=lambda job: attacks.boundary(job.model, job.texts, job.settings),
        blocks=lambda model: len(find_blocks(_classifier(model).core)),
    )


def _substituted(job: Job, plan: Substitution, done: Collection[Key]) -> Iterator[list[Substituted]]:
    return substitution.substitutions(job.model, job.texts, _created(job), job.settings, plan, done=done)


def _created(job: Job) -> list[Method]:
    return [CATALOGUE.create(method) for method in job.methods]


def _classifier(model: LanguageModel) -> Classifier:
    if not isinstance(model, Classifier):
        raise UnsupportedError(
            f"{model.name} cannot be in a study of trust",
            ["its parameters are not known"],
            "Give one that raison.load loads.",
        )
    return model
