"""The contract of an adapter: the same predictions by every way in, and nothing changed behind the caller's back."""

import contextlib
import copy

import pytest
import torch

from raison.core.capabilities.attention import ReadableAttention
from raison.core.capabilities.embeddings import Shift, WordEmbeddings
from raison.core.capabilities.hidden_states import HiddenStates
from raison.core.capabilities.passes import Passes
from raison.core.capabilities.reduced_precision import ReducedPrecision
from raison.core.targets.target import Target
from raison.models.adapters.checks.selfcheck import SelfCheckFinding, disproved, selfcheck
from raison.models.adapters.classifier import Classifier
from raison.models.gradients.embedding_shift import ball_vector
from tests.capabilities import KINDS
from tests.contracts.conftest import TEXTS
from tests.toys import removed_embeddings

TOLERANCE = {"atol": 2e-5, "rtol": 1e-4}


def plain_logits(model: Classifier, text: str) -> torch.Tensor:
    """The model called as its own documentation says."""
    with torch.no_grad():
        return model.model(**model.tokenizer(text, return_tensors="pt")).logits[0]


def test_batched_logits_equal_the_plain_model(tiny: Classifier) -> None:
    with torch.no_grad():
        own = tiny.ask(Passes).logits(tiny.encode(TEXTS))
    plain = torch.stack([plain_logits(tiny, text) for text in TEXTS])
    torch.testing.assert_close(own, plain, **TOLERANCE)
    assert plain.std(0).min() > 1e-3, "a model that ignores its input would pass"


def test_a_text_in_a_batch_is_a_text_alone(tiny: Classifier) -> None:
    run = tiny.ask(Passes).logits
    with torch.no_grad():
        together = run(tiny.encode(TEXTS))
        alone = torch.cat([run(tiny.encode([text])) for text in TEXTS])
    torch.testing.assert_close(together, alone, atol=1e-5, rtol=0)


def test_everything_kept_equals_plain_under_every_removal(tiny: Classifier) -> None:
    encoding = tiny.encode(TEXTS)
    keeps = [torch.ones(1, count, dtype=torch.bool) for count in encoding.unit_counts]
    plain = torch.stack([plain_logits(tiny, text) for text in TEXTS])
    for removal in tiny.removals:
        kept = torch.cat(tiny.masked_logits(encoding, keeps, removal))
        torch.testing.assert_close(kept, plain, **TOLERANCE)


@pytest.mark.parametrize("unit", ["token", "word"])
def test_masked_logits_equal_one_literal_sequence_at_a_time(tiny: Classifier, unit: str) -> None:
    encoding = tiny.encode(TEXTS, unit)
    generator = torch.Generator().manual_seed(0)
    keeps = [torch.rand(2, count, generator=generator) < 0.5 for count in encoding.unit_counts]
    for removal in tiny.removals:
        found = tiny.masked_logits(encoding, keeps, removal)
        for text in range(len(TEXTS)):
            for keep, logits in zip(keeps[text], found[text], strict=True):
                ids = _literal(tiny, encoding, text, keep, removal)
                if len(ids):
                    torch.testing.assert_close(logits, _one_sequence(tiny, ids), **TOLERANCE)


def _one_sequence(model: Classifier, ids: torch.Tensor) -> torch.Tensor:
    """The plain model, told that nothing is padding: ids that look like it must move neither positions nor pooling."""
    extra = {}
    padding = model.core.config.pad_token_id
    if model.core.config.model_type in ("longformer", "mpnet", "roberta"):
        extra["position_ids"] = torch.arange(len(ids))[None] + padding + 1
    if model.core.config.model_type == "xlnet":
        # The last token, from which it answers, is of a type of its own.
        extra["token_type_ids"] = torch.tensor([[0] * (len(ids) - 1) + [2]])
    try:
        if model.readout is not None:
            model.core.config.pad_token_id = None
        with torch.no_grad():
            return model.model(input_ids=ids[None], attention_mask=torch.ones_like(ids)[None], **extra).logits[0]
    finally:
        model.core.config.pad_token_id = padding


def _literal(model: Classifier, encoding: object, text: int, keep: torch.Tensor, removal: str) -> torch.Tensor:
    length = encoding.lengths[text]
    token = {"mask": model.tokenizer.mask_token_id, "unk": model.tokenizer.unk_token_id}.get(removal)
    kept = []
    for position in range(length):
        unit = int(encoding.unit_ids[text, position])
        if unit < 0 or keep[unit]:
            kept.append(int(encoding.input_ids[text, position]))
        elif removal == "pad":
            kept.append(model.tokenizer.pad_token_id)
        elif token is not None:
            kept.append(token)
    return torch.tensor(kept, dtype=torch.long)


def test_deleting_everything_gives_a_finite_prediction(tiny: Classifier) -> None:
    encoding = tiny.encode(TEXTS)
    nothing = [torch.zeros(1, count, dtype=torch.bool) for count in encoding.unit_counts]
    found = torch.cat(tiny.masked_logits(encoding, nothing, "delete"))
    assert torch.isfinite(found).all()
    torch.testing.assert_close(found, found[:1].expand_as(found), **TOLERANCE)


def test_embeddings_in_place_of_ids_change_nothing(tiny: Classifier) -> None:
    encoding = tiny.encode(TEXTS)
    with torch.no_grad():
        torch.testing.assert_close(
            tiny.ask(Passes).logits(encoding, tiny.ask(WordEmbeddings).embed(encoding)),
            tiny.ask(Passes).logits(encoding),
            **TOLERANCE,
        )


def test_logits_at_are_the_logits_from_these_embeddings(tiny: Classifier) -> None:
    """In value and in what flows back."""
    encoding = tiny.encode(TEXTS)
    noise = torch.randn(tiny.ask(WordEmbeddings).embed(encoding).shape, generator=torch.Generator().manual_seed(3))
    embeds = (tiny.ask(WordEmbeddings).embed(encoding) + 0.3 * noise).requires_grad_()
    found, plain = tiny.ask(WordEmbeddings).logits_at(encoding, embeds), tiny.ask(Passes).logits(encoding, embeds)
    torch.testing.assert_close(found, plain, **TOLERANCE)
    with torch.no_grad():
        assert (found - tiny.ask(Passes).logits(encoding)).abs().max() > 1e-3, "embeddings that are ignored would pass"
    slopes = [torch.autograd.grad(logits.square().sum(), embeds)[0] for logits in (found, plain)]
    torch.testing.assert_close(*slopes, atol=1e-4, rtol=1e-3)


def test_given_embeddings_are_all_that_the_model_reads(tiny: Classifier) -> None:
    """The embeddings of the removed text, beside the ids of the whole one, give the removed text's prediction."""
    encoding = tiny.encode(TEXTS)
    removal = next(name for name in tiny.removals if name != "delete")
    nothing = [torch.zeros(1, count, dtype=torch.bool) for count in encoding.unit_counts]
    with torch.no_grad():
        given = tiny.ask(Passes).logits(encoding, removed_embeddings(tiny, encoding, removal))
    removed = torch.cat(tiny.masked_logits(encoding, nothing, removal))
    torch.testing.assert_close(given, removed, **TOLERANCE)


def test_gradients_agree_with_finite_differences(tiny: Classifier) -> None:
    tiny.model.double()
    encoding = tiny.encode(TEXTS[:1])
    embeds = tiny.ask(WordEmbeddings).embed(encoding)
    target = Target(torch.tensor([1]), None, "logit")
    one = torch.ones(1)
    (gradient,), _ = tiny.ask(WordEmbeddings).path_gradients(encoding, lambda _text, _at: embeds, one, one, target)
    direction = torch.randn(embeds.shape, generator=torch.Generator().manual_seed(1), dtype=embeds.dtype)
    step = 1e-3
    with torch.no_grad():
        ahead, behind = (tiny.ask(Passes).logits(encoding, embeds + sign * step * direction)[0, 1] for sign in (1, -1))
    slope = ((ahead.double() - behind.double()) / (2 * step)).item()
    assert slope == pytest.approx((gradient * direction[0]).sum().item(), rel=5e-3, abs=1e-3)


def test_path_gradients_do_not_depend_on_the_batch(tiny: Classifier) -> None:
    encoding = tiny.encode(TEXTS)
    target = Target(torch.tensor([0, 1, 2]), None, "logit")
    at, weights = torch.tensor([0.3, 1.0]), torch.tensor([0.5, 2.0])

    def gradients(rows: list[int]) -> list[torch.Tensor]:
        part = encoding.select(rows)
        embeds = tiny.ask(WordEmbeddings).embed(part)
        own = target.rows(torch.tensor(rows))
        return tiny.ask(WordEmbeddings).path_gradients(
            part, lambda i, p: p[:, None, None] * embeds[i], at, weights, own
        )[0]

    together = gradients([0, 1, 2])
    for row, found in enumerate(together):
        torch.testing.assert_close(found, gradients([row])[0], atol=1e-4, rtol=1e-3)


def test_small_budget_gives_the_same(tiny: Classifier) -> None:
    encoding = tiny.encode(TEXTS)
    keeps = [torch.eye(count, dtype=torch.bool) for count in encoding.unit_counts]
    large = tiny.masked_logits(encoding, keeps, "delete")
    tiny.budget.tokens = 20
    for first, second in zip(large, tiny.masked_logits(encoding, keeps, "delete"), strict=True):
        torch.testing.assert_close(first, second, **TOLERANCE)


@pytest.mark.new_model
def test_selfcheck_passes_and_confirms_the_capabilities(tiny: Classifier) -> None:
    findings = selfcheck(tiny, TEXTS[0])
    assert all(finding.passed for finding in findings), findings
    assert not disproved(findings)
    tried = {finding.capability for finding in findings} - {None}
    # Passes are tried with each of the others, and nothing is claimed of the rest that could be.
    assert {kind for kind in KINDS.values() if tiny.offers(kind)} == tried | {Passes, HiddenStates, ReducedPrecision}
    readable = not tiny.core.config.is_encoder_decoder and tiny.core.config.model_type not in ("longformer", "xlnet")
    assert tiny.offers(ReadableAttention) == readable
    assert {kind for kind in KINDS.values() if not tiny.offers(kind)} == set(tiny.withheld), "every lack has its reason"


def test_a_failed_check_takes_its_capability_away(tiny: Classifier) -> None:
    broken = SelfCheckFinding("gradients reach all embeddings", False, "none", WordEmbeddings)
    assert disproved([broken]) == {WordEmbeddings}


@pytest.mark.in_turn(4)
def test_a_frozen_model_is_explained_like_any_other(tiny: Classifier) -> None:
    tiny.model.requires_grad_(False)
    findings = selfcheck(tiny, TEXTS[0])
    assert all(finding.passed for finding in findings), findings


@pytest.mark.new_model
def test_training_mode_and_hooks_are_restored(tiny: Classifier) -> None:
    tiny.model.train()
    first = dict(tiny.model.named_children())
    next(iter(first.values())).eval()
    before = [module.training for module in tiny.model.modules()]
    hooks = copy.copy(tiny.embedding_table._forward_hooks)
    encoding = tiny.encode(TEXTS)
    random_state = torch.get_rng_state()
    tiny.ask(Passes).logits(encoding, tiny.ask(WordEmbeddings).embed(encoding))
    with tiny.ask(ReadableAttention).tap() if tiny.offers(ReadableAttention) else torch.no_grad():
        tiny.ask(Passes).logits(encoding)
    assert [module.training for module in tiny.model.modules()] == before
    assert tiny.embedding_table._forward_hooks == hooks
    assert torch.equal(torch.get_rng_state(), random_state)
    assert all(parameter.grad is None for parameter in tiny.model.parameters())


@pytest.mark.new_model
def test_hidden_states_are_the_mean_over_layers_of_each_text_alone(tiny: Classifier) -> None:
    tiny.model.train()
    random_state = torch.get_rng_state()
    found = tiny.ask(HiddenStates).hidden_states(tiny.encode(TEXTS))
    assert all(module.training for module in tiny.model.modules())
    assert torch.equal(torch.get_rng_state(), random_state)
    tiny.model.eval()
    reader = tiny.core.get_encoder() if tiny.core.config.is_encoder_decoder else tiny.core.base_model
    for text, states in zip(TEXTS, found, strict=True):
        with torch.no_grad():
            layers = reader(**tiny.tokenizer(text, return_tensors="pt"), output_hidden_states=True).hidden_states
        literal = sum(layer[0] for layer in layers[1:]) / (len(layers) - 1)
        assert states.dtype == torch.float32
        assert not states.requires_grad
        torch.testing.assert_close(states, literal, atol=1e-5, rtol=1e-5)


def test_hidden_states_do_not_depend_on_the_batch(tiny: Classifier) -> None:
    encoding = tiny.encode(TEXTS)
    together = tiny.ask(HiddenStates).hidden_states(encoding)
    for row, states in enumerate(together):
        torch.testing.assert_close(
            states, tiny.ask(HiddenStates).hidden_states(encoding.select([row]))[0], atol=1e-5, rtol=1e-5
        )


def _moved_by_hand(model: Classifier, shift: Shift) -> Classifier:
    """A copy of the model whose embedding tables have the shift written into their weights."""
    copied = Classifier(copy.deepcopy(model.model), model.tokenizer, model.name)
    before = model.embedding_table.weight.detach()
    radius = shift.radius * before.norm(dim=1).mean().item()
    after = before.clone()
    for token in set(range(len(before))) - set(model.tokenizer.all_special_ids):
        after[token] += torch.from_numpy(radius * ball_vector(shift.draw, token, before.shape[1])).float()
    tables = [copied.embedding_table]
    if copied.core.config.is_encoder_decoder:
        tables.append(copied.core.get_decoder().get_input_embeddings())
    for table in tables:
        table.weight.data.copy_(after)
    return copied


@pytest.mark.in_turn(2)
def test_shifted_predictions_are_those_of_a_model_with_moved_weights(tiny: Classifier) -> None:
    """In every way in: plain, masked, from embeddings, with gradients and hidden states."""
    shift = Shift(0.3, 1)
    moved, encoding = _moved_by_hand(tiny, shift), tiny.encode(TEXTS)
    keeps = [torch.eye(count, dtype=torch.bool)[:1] for count in encoding.unit_counts]

    def everything(model: Classifier) -> list[torch.Tensor]:
        with torch.no_grad():
            embeds = model.ask(WordEmbeddings).embed(encoding)
            logits = [model.ask(Passes).logits(encoding), model.ask(Passes).logits(encoding, embeds)]
        masked = [part for removal in model.removals for part in model.masked_logits(encoding, keeps, removal)]
        return [embeds, *logits, *masked, *model.ask(HiddenStates).hidden_states(encoding)]

    plain = everything(tiny)
    with tiny.ask(WordEmbeddings).shifted(shift):
        found = everything(tiny)
    for one, expected in zip(found, everything(moved), strict=True):
        torch.testing.assert_close(one, expected, **TOLERANCE)
    assert (found[1] - plain[1]).abs().max() > 1e-3, "a shift that does nothing would pass"
    for one, expected in zip(everything(tiny), plain, strict=True):
        assert torch.equal(one, expected)


def test_given_embeddings_are_not_shifted_again(tiny: Classifier) -> None:
    encoding = tiny.encode(TEXTS)
    with torch.no_grad():
        embeds = tiny.ask(WordEmbeddings).embed(encoding)
        plain = tiny.ask(Passes).logits(encoding, embeds)
        with tiny.ask(WordEmbeddings).shifted(Shift(0.5, 0)):
            torch.testing.assert_close(tiny.ask(Passes).logits(encoding, embeds), plain)
            assert not torch.equal(tiny.ask(WordEmbeddings).embed(encoding), embeds)


@pytest.mark.new_model
def test_a_shift_leaves_nothing_behind(tiny: Classifier) -> None:
    weights = copy.deepcopy(tiny.model.state_dict())
    random_state = torch.get_rng_state()
    encoding = tiny.encode(TEXTS)
    with (
        contextlib.suppress(KeyError),
        tiny.ask(WordEmbeddings).shifted(Shift(0.5, 0)),
        tiny.ask(WordEmbeddings).shifted(Shift(0.1, 1)),
    ):
        tiny.ask(Passes).logits(encoding)
        raise KeyError
    assert all(torch.equal(value, weights[name]) for name, value in tiny.model.state_dict().items())
    assert not any(module._forward_hooks for module in tiny.model.modules())
    assert torch.equal(torch.get_rng_state(), random_state)
