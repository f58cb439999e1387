"""What the trainings of attribution models share: the backbone, and what a training that is resumed must find again."""

from raison.core.capabilities.step_logits import StepLogits
from raison.core.model import LanguageModel
from raison.data.dataset import Dataset
from raison.data.digest import dataset_digest
from raison.jobs.identity import DATA, digest_of, of_several
from raison.models.derived import explainers
from raison.models.derived.identity import base_identity, identity_of

BACKBONE = "the backbone"
"""A backbone that is not the model's own, in an identity."""
LIGHT = "minilm"
"""The backbone for explaining models that read from left to right, which cannot be attribution models themselves."""


def backbone_of(model: LanguageModel, named: str | None) -> str:
    """The named backbone, or else the model's own encoder if it has one."""
    return named or (LIGHT if model.offers(StepLogits) else explainers.OWN)


def identity_of_training(model: LanguageModel, backbone: str, data: Dataset, dev: Dataset | None) -> dict[str, str]:
    """Digests of the model, a backbone of another model, and the texts."""
    return {
        **identity_of(model),
        **of_several({} if backbone == explainers.OWN else {BACKBONE: base_identity(backbone)}),
        DATA: digest_of([dataset_digest(data), None if dev is None else dataset_digest(dev)]),
    }
