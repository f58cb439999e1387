"""A classifier with a 16-bit copy of its model."""

from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import nn

from raison.core.capabilities.reduced_precision import ReducedPrecision
from raison.core.model import LanguageModel
from raison.models.passes.precision import OwnReadout, ReducedModel
from raison.models.passes.prefixes.causal_cache import CausalCache

if TYPE_CHECKING:
    from raison.models.adapters.classifier import Classifier


class ReducedTwin(ReducedPrecision):
    """The same adapter over a 16-bit copy, which takes 2 bytes per weight from the first call on."""

    def __init__(self, classifier: "Classifier", cache: CausalCache | None) -> None:
        """`cache` is a causal model's: all its readouts share one copy."""
        self._classifier = classifier
        self._cache = cache
        self._twin: ReducedModel[Classifier] = (
            ReducedModel(classifier.model, classifier.core) if cache is None else cache.reduced
        )

    def reduced(self) -> LanguageModel:
        classifier = self._classifier
        return classifier if classifier.core.dtype is torch.bfloat16 else self._twin.get(classifier, self._over)

    def _over(self, tree: nn.Module) -> "Classifier":
        """The readout is the model's own and keeps its precision."""
        classifier, cache = self._classifier, self._cache
        if classifier.readout is None:
            return classifier.over(tree, classifier.use)
        use = replace(
            classifier.use, readout=OwnReadout(classifier.readout.branches, classifier.readout, classifier.core.dtype)
        )
        if cache is None:
            return classifier.over(tree, use)
        twins = cache.of_twin(tree)
        twins.packed.follow(cache.packed)
        return classifier.over(tree, replace(use, cache=twins))
