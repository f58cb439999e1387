"""What rules do to the way back, and that they do nothing else."""

import threading
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from transformers import activations

import raison
from raison.core.capabilities.embeddings import WordEmbeddings
from raison.core.capabilities.passes import Passes
from raison.core.capabilities.rules import BackwardRules
from raison.core.errors import UnsupportedError
from raison.core.internals.rules import FiniteDifference, Relevance
from raison.core.targets.target import Target
from raison.models.gradients.rules.function_mode import RuleBook, applied
from raison.models.gradients.rules.relevance import relevance_rules
from raison.models.gradients.rules.rescale import rescale_rules
from raison.models.stack.tap import tap
from tests.tiny import TAPPED, TEXTS, TINY

LRP = Relevance("constant", "gradient", "gradient")
CP = Relevance("constant", "identity", "constant")
ATTN = Relevance("shared", "identity", "shared")


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def back(book: RuleBook, function: Callable[..., Tensor], *inputs: Tensor) -> tuple[Tensor, ...]:
    """The value of a function, and what the rules put in place of its sum's gradients."""
    points = [part.clone().requires_grad_() for part in inputs]
    with applied(book, function if isinstance(function, nn.Module) else nn.Identity()):
        value = function(*points)
    return (value.detach(), *torch.autograd.grad(value.sum(), points, allow_unused=True))


@pytest.mark.parametrize("rules", [LRP, CP, ATTN, "differences"])
@pytest.mark.parametrize("name", sorted(TAPPED))
def test_forward_values_stay_bit_for_bit(name: str, rules: Relevance | str) -> None:
    model = raison.load(*TINY[name]())
    encoding = model.encode(list(TEXTS) + list(reversed(TEXTS)), "token")
    embeds = model.ask(WordEmbeddings).embed(encoding)
    embeds = torch.cat([embeds[:3], embeds[3:] * 0.5]).requires_grad_()
    book = rescale_rules(6) if isinstance(rules, str) else relevance_rules(rules)
    with tap(model.core, (), ()):
        plain = model.ask(Passes).logits(encoding, embeds)
        with applied(book, model.core):
            ruled = model.ask(Passes).logits(encoding, embeds)
        (slopes,) = torch.autograd.grad(plain[:3].sum(), embeds)
        (changed,) = torch.autograd.grad(ruled[:3].sum(), embeds)
    assert torch.equal(plain, ruled)
    assert torch.isfinite(changed).all()
    assert (changed - slopes).abs().max() > 1e-3


def test_everything_is_undone_also_after_an_error() -> None:
    model = raison.load(*TINY["gpt2"]())
    point = random(2, 3).requires_grad_()
    with pytest.raises(RuntimeError, match="stop"), applied(relevance_rules(ATTN), model.core):
        raise RuntimeError("stop")
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.core.modules())
    (slope,) = torch.autograd.grad((point * point).sum(), point)
    torch.testing.assert_close(slope, 2 * point.detach(), rtol=0, atol=0)
    raison.explain(model, TEXTS[0], "deep_lift")
    assert all(parameter.grad is None and parameter.requires_grad for parameter in model.core.parameters())


def test_other_threads_compute_as_ever() -> None:
    gelu = activations.NewGELUActivation()
    found: list[Tensor] = []

    def elsewhere() -> None:
        point = random(5).requires_grad_()
        found.extend(torch.autograd.grad((gelu(point) * point).sum(), point))

    elsewhere()
    with applied(relevance_rules(ATTN), gelu):
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
    assert torch.equal(found[0], found[1])


def test_parameters_are_constants() -> None:
    # A product with a weight is linear in the state: it is not shared out, and the weight gets nothing.
    weight = nn.Parameter(random(4))
    _, slope, own = back(relevance_rules(ATTN), lambda x, w: x * weight * w.detach(), random(3, 4), random(4, seed=1))
    torch.testing.assert_close(slope, (weight.detach() * random(4, seed=1)).expand(3, 4))
    assert own is None
    assert weight.grad is None


@pytest.mark.parametrize("product", [torch.mul, torch.matmul, lambda a, b: torch.einsum("ij,jk->ik", a, b)])
def test_products_are_shared(product: Callable[[Tensor, Tensor], Tensor]) -> None:
    first, second = random(3, 3), random(3, 3, seed=1)
    plain = back(RuleBook({}), product, first, second)
    shared = back(relevance_rules(ATTN), product, first, second)
    assert torch.equal(plain[0], shared[0])
    for whole, half in zip(plain[1:], shared[1:], strict=True):
        torch.testing.assert_close(half, whole / 2)


@pytest.mark.parametrize("function", [torch.tanh, nn.functional.gelu, nn.functional.silu, nn.GELU("tanh")])
def test_activations_send_everything_to_their_input(function: Callable[[Tensor], Tensor]) -> None:
    point = torch.cat([random(6), torch.zeros(1, dtype=torch.float64)])
    value, slope = back(relevance_rules(ATTN), function, point)
    torch.testing.assert_close(slope * point, value)
    assert torch.isfinite(slope).all()


def test_activations_in_several_calls_count_as_one() -> None:
    point = random(6)
    gelu = activations.NewGELUActivation()
    value, slope = back(relevance_rules(ATTN), gelu, point)
    torch.testing.assert_close(slope * point, value)
    plain = back(RuleBook({}), gelu, point)[1]
    # Where activations keep their slope, sharing products must not reach into them.
    kept = back(relevance_rules(Relevance("shared", "gradient", "shared")), gelu, point)[1]
    torch.testing.assert_close(kept, plain)


def test_a_constant_gate() -> None:
    gate, gated = random(4), random(4, seed=1)
    silu = nn.functional.silu
    for function in (lambda a, b: silu(a) * b, lambda a, b: b * silu(a)):
        _, first, second = back(relevance_rules(CP), function, gate, gated)
        assert first is None
        torch.testing.assert_close(second, silu(gate))


def test_attention_weights_are_constants() -> None:
    scores, values = random(2, 3), random(3, 4, seed=1)
    _, first, second = back(relevance_rules(LRP), lambda s, v: s.softmax(-1) @ v, scores, values)
    assert first is None
    torch.testing.assert_close(second, scores.softmax(-1).sum(0)[:, None].expand(3, 4))


def plain_norm(values: Tensor, divisor: Tensor, weight: Tensor) -> Tensor:
    return (values - values.mean(-1, keepdim=True)) / divisor * weight


def test_divisors_of_norms_are_constants() -> None:
    point, weight = random(3, 8), random(8, seed=1)
    layer, rms = nn.LayerNorm(8).double(), nn.RMSNorm(8, eps=1e-6).double()
    for norm in (layer, rms):
        norm.weight.data = weight
    deviation = (point.var(-1, correction=0, keepdim=True) + layer.eps).sqrt()
    length = (point.square().mean(-1, keepdim=True) + rms.eps).sqrt()
    _, expected = back(RuleBook({}), lambda x: plain_norm(x, deviation, weight), point)
    torch.testing.assert_close(back(relevance_rules(LRP), layer, point)[1], expected)
    torch.testing.assert_close(back(relevance_rules(LRP), rms, point)[1], weight / length)
    for written in (
        lambda x: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + rms.eps) * weight,
        lambda x: x / torch.sqrt((x * x).mean(-1, keepdim=True) + rms.eps) * weight,
        lambda x: x * (x.pow(2).mean(-1, keepdim=True) + rms.eps) ** -0.5 * weight,
    ):
        torch.testing.assert_close(back(relevance_rules(LRP), written, point)[1], weight / length)


def test_fused_attention_is_refused() -> None:
    states = random(2, 1, 3, 4)
    for book in (relevance_rules(LRP), rescale_rules(2)):
        with pytest.raises(UnsupportedError, match="attn_implementation='eager'"):
            back(book, lambda x: nn.functional.scaled_dot_product_attention(x, x, x), states)


def test_a_model_without_the_interface_says_what_is_missing() -> None:
    model = raison.load(*TINY["bert"]())
    assert model.offers(BackwardRules)
    model.capabilities = tuple(one for one in model.capabilities if not isinstance(one, BackwardRules))
    with pytest.raises(UnsupportedError, match="integrated_gradients"):
        raison.explain(model, TEXTS[0], "attn_lrp")


def test_gradients_do_not_depend_on_the_batch() -> None:
    model = raison.load(*TINY["roberta"]())
    encoding = model.encode(list(TEXTS), "word")
    embeds = model.ask(WordEmbeddings).embed(encoding)
    target = Target(torch.tensor([0, 1, 2]), None, "logit")
    for rules in (ATTN, FiniteDifference(embeds * 0.5)):
        together, values = model.ask(BackwardRules).ruled_gradients(encoding, embeds, rules, target)
        model.budget.tokens = 1
        alone, own = model.ask(BackwardRules).ruled_gradients(encoding, embeds, rules, target)
        torch.testing.assert_close(values, own, rtol=0, atol=1e-6)
        for length, first, second in zip(encoding.lengths, together, alone, strict=True):
            assert len(first) == length
            torch.testing.assert_close(first, second, rtol=0, atol=1e-6)
        model.budget.tokens = 2048
