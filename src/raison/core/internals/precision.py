"""The precision in which perturbed texts are evaluated."""

from typing import Literal

Precision = Literal["float32", "bfloat16"]
"""float32: the model's own precision, whatever it was loaded in. bfloat16: 16-bit weights and states."""
