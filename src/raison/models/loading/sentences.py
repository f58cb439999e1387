"""Models of sentence-transformers."""

from sentence_transformers import CrossEncoder

from raison.core.errors import InputError, LoadError
from raison.core.model import LanguageModel
from raison.models.loading.functions import PAIR_PROBES, Agreement, Asked, asked
from raison.models.loading.same import Adapt, checked


def from_sentence_transformers(model: object, agreed: Agreement, adapt: Adapt) -> LanguageModel:
    """A cross-encoder as a classifier of pairs, or a number for each. Raises LoadError for other models."""
    if not isinstance(model, CrossEncoder):
        raise LoadError(
            f"a {type(model).__name__} turns a text into a vector, and a vector is nothing to explain: give a function "
            "of pairs that returns their similarity (load(function, classes=['cosine'], pairs=True))."
        )
    if agreed.classes is not None or agreed.multi_label:
        raise InputError("classes= and multi_label= are for functions: a CrossEncoder has its own.")
    inner = model.model
    if inner is None:
        raise LoadError("this CrossEncoder has no transformers model: give a function of pairs, model.predict.")
    found = checked(lambda: adapt(inner, model.tokenizer), model.predict, PAIR_PROBES)
    if isinstance(found, LanguageModel):
        return found
    if model.num_labels != 1:
        raise LoadError(
            f"this CrossEncoder gives {model.num_labels} numbers that are neither its model's logits nor their "
            "probabilities: give a function of pairs that returns probabilities (load(function, classes=[...], "
            "pairs=True))."
        )
    name = agreed.name or str(inner.config.name_or_path or type(inner).__name__)
    own = Agreement(pairs=True, batch=agreed.batch, name=name)
    return asked(Asked(model.predict, name, ("score",), found), own)
