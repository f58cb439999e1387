"""Rules of DeepLIFT: finite differences between a text and a baseline that go through the model as one batch.

The first half of every tensor's first axis belongs to the texts, the second to their baselines. Gradients lead through
the first half only, with differences of the two in place of slopes. If every nonlinear call has a rule, the multipliers
at the embeddings times (text - baseline) sum to the difference of the two values.
"""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from raison.core.errors import UnsupportedError
from raison.models.gradients.rules.function_mode import Rule, RuleBook, TorchCall, carries, pulled, refuse_fused
from raison.models.gradients.rules.relevance import FUSED, GATES, PRODUCTS
from raison.numerics.gradients import rescale
from raison.numerics.gradients.rescale import Pull, precise

Secant = Callable[[Tensor, Tensor], Tensor]

ELEMENTWISE = (
    *("relu", "gelu", "silu", "tanh", "mish", "elu", "selu", "celu", "leaky_relu", "relu6", "hardswish", "hardtanh"),
    *("sigmoid", "hardsigmoid", "softplus", "log_sigmoid", "erf", "square", "sin", "cos", "abs", "clamp", "clamp_min"),
)
"""Functions of one number that are defined everywhere."""
CLOSED: Mapping[str, Secant] = {
    "sqrt": rescale.root_secant,
    "rsqrt": rescale.inverse_root_secant,
    "reciprocal": rescale.inverse_secant,
    "exp": rescale.exponential_secant,
    "log": rescale.logarithm_secant,
}
POWERS: Mapping[float, Secant] = {
    0.5: rescale.root_secant,
    -0.5: rescale.inverse_root_secant,
    -1: rescale.inverse_secant,
}


def rescale_rules(rows: int) -> RuleBook:
    """Rules for a batch of `rows` rows, texts first."""
    pairs = _DeepLiftRules(rows)
    functions: dict[str, Rule] = dict.fromkeys(ELEMENTWISE, pairs.elementwise)
    functions |= {name: pairs.closed(secant) for name, secant in CLOSED.items()}
    functions |= dict.fromkeys((*PRODUCTS, *GATES), pairs.product)
    functions |= dict.fromkeys(("div", "true_divide", "__truediv__"), pairs.quotient)
    functions |= dict.fromkeys(FUSED, refuse_fused)
    functions |= {
        "pow": pairs.power,
        "__rdiv__": pairs.divisor,
        "softmax": pairs.along(rescale.softmax_pull),
        "log_softmax": pairs.along(rescale.log_softmax_pull),
        "logsumexp": pairs.log_sum_exp,
        "layer_norm": pairs.layer_norm,
        "rms_norm": pairs.rms_norm,
    }
    return RuleBook(functions, pairs.elementwise)


class _DeepLiftRules:
    def __init__(self, rows: int) -> None:
        self._rows = rows

    def elementwise(self, call: TorchCall) -> Tensor:
        def function(values: Tensor) -> Tensor:
            return call.function(values, *call.args[1:], **call.kwargs)

        return self.closed(lambda first, second: rescale.secant(function, first, second))(call)

    def closed(self, secant: Secant) -> Rule:
        """The rule of a function of one number with the given finite difference."""

        def rule(call: TorchCall) -> Tensor:
            slope = secant(*self._halves(call.args[0]))
            return self._pulled(call, lambda grad: grad.to(slope) * slope)

        return rule

    def power(self, call: TorchCall) -> Tensor:
        exponent = call.argument(1, "exponent")
        if exponent in POWERS:
            return self.closed(POWERS[exponent])(call)
        if isinstance(exponent, (int, float)) and exponent == int(exponent) and exponent >= 1:
            return self.elementwise(call)
        return call.run()

    def product(self, call: TorchCall) -> Tensor:
        """a b - a0 b0 = (a - a0) (b + b0) / 2 + (a + a0) / 2 (b - b0): the gradient at the middle of the two points."""
        if sum(carries(factor) for factor in call.args) < 2:
            return call.run()
        with torch.no_grad():
            value: Tensor = call.run()
        middle = [self._middle(factor) if carries(factor) else factor for factor in call.args]
        carrier: Tensor = call.function(*middle, **call.kwargs)
        return pulled(value, carrier, lambda grad: grad[: len(carrier)])

    def quotient(self, call: TorchCall) -> Tensor:
        """a / b as the product of a and 1 / b."""
        first, second = call.args[:2]
        return self._divided(call, first, second) if carries(second) else call.run()

    def divisor(self, call: TorchCall) -> Tensor:
        """A number divided by a tensor, which comes as (tensor, number)."""
        second, first = call.args[:2]
        return self._divided(call, first, second)

    def _divided(self, call: TorchCall, first: Any, second: Tensor) -> Tensor:
        with torch.no_grad():
            value: Tensor = call.run()
        inverse = self.closed(rescale.inverse_secant)(TorchCall(torch.reciprocal, (second,), {}))
        carrier = self.product(TorchCall(torch.mul, (inverse, first), {}))
        return pulled(value, carrier, lambda grad: grad)

    def along(self, pull_of: Callable[[Tensor, Tensor, int], Pull]) -> Rule:
        """The rule of a softmax along one axis."""

        def rule(call: TorchCall) -> Tensor:
            first, second = self._halves(call.args[0])
            return self._pulled(call, pull_of(first, second, call.argument(1, "dim")))

        return rule

    def log_sum_exp(self, call: TorchCall) -> Tensor:
        first, second = self._halves(call.args[0])
        dim = call.argument(1, "dim")
        weights = rescale.log_sum_exp_factors(first, second, dim)
        kept = call.argument(2, "keepdim", False)
        return self._pulled(call, lambda grad: (grad if kept else grad.unsqueeze(dim)).to(weights) * weights)

    def layer_norm(self, call: TorchCall) -> Tensor:
        return self._norm(call, call.argument(4, "eps", 1e-5), centred=True)

    def rms_norm(self, call: TorchCall) -> Tensor:
        eps = call.argument(3, "eps")
        return self._norm(call, torch.finfo(call.args[0].dtype).eps if eps is None else eps, centred=False)

    def _norm(self, call: TorchCall, eps: float, centred: bool) -> Tensor:
        axes = tuple(range(-len(call.argument(1, "normalized_shape")), 0))
        weight = call.argument(2, "weight")
        inner = rescale.norm_pull(*self._halves(call.args[0]), axes, eps, centred)
        return self._pulled(call, lambda grad: inner(grad if weight is None else grad * weight))

    def _pulled(self, call: TorchCall, pull: Pull) -> Tensor:
        """The call's own value; gradients of the texts' half go to the first argument's, the baselines' get none."""
        source: Tensor = call.args[0]
        with torch.no_grad():
            value: Tensor = call.run()

        def both(grad: Tensor) -> Tensor:
            upper = pull(grad[: len(grad) // 2])
            return torch.cat([upper, torch.zeros_like(upper)])

        return pulled(value, source, both)

    def _halves(self, values: Tensor) -> tuple[Tensor, Tensor]:
        self._check(values)
        first, second = precise(values).chunk(2)
        return first, second

    def _middle(self, factor: Tensor) -> Tensor:
        """The mean of the two points; gradients go to the texts' half."""
        self._check(factor)
        first, second = factor.detach().chunk(2)
        return pulled((first + second) / 2, factor, lambda grad: torch.cat([grad, torch.zeros_like(grad)]))

    def _check(self, values: Any) -> None:
        if values.dim() == 0 or values.shape[0] % self._rows:
            raise UnsupportedError(
                "differences from a baseline cannot go back through this model",
                [f"a tensor of shape {tuple(values.shape)} does not have the batch as its first axis"],
                "Use integrated_gradients.",
            )
