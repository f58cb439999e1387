"""Rules of layer-wise relevance propagation, as changes of the gradient that is then multiplied with the input.

Ali et al. 2022 hold the divisor of normalisation layers and the weights of attention constant. Achtibat et al. 2024
differentiate the softmax, share products between their factors, and send all relevance of an activation to its input.
All calls that are not named here keep their gradient.
"""

import torch
from torch import Tensor

from raison.core.internals.rules import Relevance
from raison.models.gradients.rules.function_mode import Rule, RuleBook, TorchCall, carries, pulled, refuse_fused

ACTIVATIONS = ("relu", "gelu", "silu", "tanh", "mish", "elu", "selu", "leaky_relu", "relu6", "hardswish")
"""Activations that are zero at zero; for others f(z) / z diverges near zero, and the slope is used."""
PRODUCTS = ("matmul", "__matmul__", "bmm", "einsum")
GATES = ("mul", "multiply", "__mul__", "__rmul__")
FUSED = ("scaled_dot_product_attention",)


def relevance_rules(rules: Relevance) -> RuleBook:
    """See core.internals.rules.Relevance."""
    functions: dict[str, Rule] = {"layer_norm": _layer_norm, "rms_norm": _rms_norm, "pow": _power}
    # Norms that are computed in several calls divide by one of these.
    functions |= dict.fromkeys(("rsqrt", "sqrt"), _as_constant)
    functions |= dict.fromkeys(FUSED, refuse_fused)
    if rules.attention == "constant":
        functions["softmax"] = _as_constant
    else:
        functions |= dict.fromkeys(PRODUCTS, _shared)
    whole = None
    last = _LastActivation()
    if rules.gates == "constant":
        functions |= dict.fromkeys(GATES, last.gated)
    elif rules.gates == "shared":
        functions |= dict.fromkeys(GATES, _shared)
    if rules.activations == "identity":
        whole = last.identity
        functions |= dict.fromkeys(ACTIVATIONS, whole)
    elif rules.gates != "gradient":
        # Calls inside an activation do not count as gates.
        whole = last.seen
        functions |= dict.fromkeys(ACTIVATIONS, whole)
    return RuleBook(functions, whole)


class _LastActivation:
    """Knows the latest activation's output, which identifies the gate of a product."""

    def __init__(self) -> None:
        self._output: Tensor | None = None

    def seen(self, call: TorchCall) -> Tensor:
        """An activation with its own slope."""
        value: Tensor = call.run()
        self._output = value
        return value

    def identity(self, call: TorchCall) -> Tensor:
        """f(z) / z, zero at z = 0."""
        source: Tensor = call.args[0]
        with torch.no_grad():
            value: Tensor = call.run()
            wide = torch.promote_types(value.dtype, torch.float32)
            slope = torch.where(source == 0, 0, value.to(wide) / source.to(wide))
        result = pulled(value, source, lambda grad: grad * slope)
        self._output = result
        return result

    def gated(self, call: TorchCall) -> Tensor:
        """A product, in which the factor that comes from an activation is constant."""
        if not all(carries(factor) for factor in call.args[:2]):
            return call.run()
        gate = self._output
        first, second = (gate.detach() if gate is not None and factor is gate else factor for factor in call.args[:2])
        return TorchCall(call.function, (first, second, *call.args[2:]), call.kwargs).run()


def _as_constant(call: TorchCall) -> Tensor:
    return call.run().detach()


def _power(call: TorchCall) -> Tensor:
    value: Tensor = call.run()
    return value.detach() if call.argument(1, "exponent") in (-0.5, 0.5) else value


def _shared(call: TorchCall) -> Tensor:
    """Half of the gradient to each factor; a product with a constant is left alone."""
    value: Tensor = call.run()
    if sum(carries(factor) for factor in call.args) < 2:
        return value
    return pulled(value, value, lambda grad: grad / 2)


def _layer_norm(call: TorchCall) -> Tensor:
    source: Tensor = call.args[0]
    axes = _axes(call)
    with torch.no_grad():
        value: Tensor = call.run()
        wide = source.to(torch.promote_types(source.dtype, torch.float32))
        scale = (wide.var(axes, correction=0, keepdim=True) + call.argument(4, "eps", 1e-5)).rsqrt()
        scale = _scaled(scale, call.argument(2, "weight"))

    def pull(grad: Tensor) -> Tensor:
        inner = grad * scale
        return inner - inner.mean(axes, keepdim=True)

    return pulled(value, source, pull)


def _rms_norm(call: TorchCall) -> Tensor:
    source: Tensor = call.args[0]
    with torch.no_grad():
        value: Tensor = call.run()
        wide = source.to(torch.promote_types(source.dtype, torch.float32))
        eps = call.argument(3, "eps")
        eps = torch.finfo(source.dtype).eps if eps is None else eps
        scale = (wide.square().mean(_axes(call), keepdim=True) + eps).rsqrt()
        scale = _scaled(scale, call.argument(2, "weight"))
    return pulled(value, source, lambda grad: grad * scale)


def _scaled(scale: Tensor, weight: Tensor | None) -> Tensor:
    return scale if weight is None else scale * weight.to(scale)


def _axes(call: TorchCall) -> tuple[int, ...]:
    """The axes that a norm runs over, counted from the end."""
    return tuple(range(-len(call.argument(1, "normalized_shape")), 0))
