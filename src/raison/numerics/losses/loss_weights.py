"""The weights of attributive masking's losses, and how a mask's size counts."""

import math
from dataclasses import dataclass
from typing import Literal

from raison.core.errors import InputError

MaskSize = Literal["cross_entropy", "l1"]


@dataclass(frozen=True, slots=True)
class LossWeights:
    """The lambdas of Barkan et al. 2024 (AML), equation 4; a term of weight zero is left out, with its passes."""

    prediction: float = 1.0
    inverse: float = 1.0
    size: float = 1.0

    def __post_init__(self) -> None:
        for name, value in (("prediction", self.prediction), ("inverse", self.inverse), ("size", self.size)):
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
                raise InputError(f"the weight of the loss '{name}' cannot be {value!r}: give a number of at least 0.")
        if self.prediction == self.inverse == 0:
            raise InputError(
                "the weights of the losses 'prediction' and 'inverse' are both 0: nothing would be explained."
            )


def weights_of(typed: str) -> LossWeights | None:
    """Three numbers separated by commas; None for an empty value. Raises InputError."""
    if not typed:
        return None
    try:
        prediction, inverse, size = (float(number) for number in typed.split(","))
    except ValueError:
        raise InputError(f"cannot read --weights '{typed}': give three numbers, prediction,inverse,size.") from None
    return LossWeights(prediction, inverse, size)
