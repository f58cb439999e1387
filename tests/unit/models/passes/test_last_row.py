"""The last layer on the row that is read: equal to whole passes, or not used."""

import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import Tensor, nn

from raison.core.capabilities.embeddings import WordEmbeddings
from raison.core.capabilities.passes import Passes
from raison.core.inputs.encoding import Encoding
from raison.core.targets.target import Target
from raison.models.adapters.classifier import Classifier
from raison.models.gradients.path_gradients import RowGradients
from raison.models.passes import batching
from raison.models.passes.last_row import LastRow
from raison.models.stack.layers import layer_stack
from tests.tiny import TINY

TEXTS = ["a dull plot , but the end is good", "a quiet film", "the good end of a dull film is quiet"]
FIRST = ("bert", "roberta", "distilbert", "electra", "modernbert")


def problem(model: Classifier) -> tuple[Encoding, list[Tensor]]:
    encoding = model.encode(TEXTS, "word")
    rng = torch.Generator().manual_seed(0)
    return encoding, [torch.rand(9, n, generator=rng) > 0.4 for n in encoding.unit_counts]


def whole(model: Classifier, encoding: Encoding, keeps: list[Tensor], removal: str) -> list[Tensor]:
    with torch.no_grad():
        return batching.masked_logits(
            encoding,
            keeps,
            model.removing.remover(removal),
            lambda table: batching.run_table(table, model.budget, model.passes.forward),
        )


def rows_of_the_last_layer(model: Classifier, work: Callable[[], object]) -> set[int]:
    """Of how many tokens each pass computes the last layer's feed-forward network."""
    widths: set[int] = set()
    wide = [m for m in layer_stack(model.core)[-1].modules() if isinstance(m, nn.Linear)][-1]
    hook = wide.register_forward_hook(lambda _module, args, _output: widths.add(args[0].shape[1]))
    work()
    hook.remove()
    return widths


def is_run_whole(model: Classifier) -> bool:
    """Once the first batch has decided."""
    encoding, keeps = problem(model)
    model.masked_logits(encoding, keeps, "mask")
    return 1 not in rows_of_the_last_layer(model, lambda: model.masked_logits(encoding, keeps, "mask"))


def close(found: list[Tensor], expected: list[Tensor]) -> None:
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("removal", ["mask", "delete"])
@pytest.mark.parametrize("name", FIRST)
def test_equals_whole_passes_and_runs_one_row_of_the_feed_forward_network(name: str, removal: str) -> None:
    """Deleted units leave rows of several lengths, so that attention has masks."""
    model = Classifier(*TINY[name](), name)
    encoding, keeps = problem(model)
    close(model.masked_logits(encoding, keeps, removal), whole(model, encoding, keeps, removal))
    found: list[Tensor] = []
    assert rows_of_the_last_layer(model, lambda: found.extend(model.masked_logits(encoding, keeps, removal))) == {1}
    close(found, whole(model, encoding, keeps, removal))
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.core.modules())


@pytest.mark.parametrize("name", FIRST)
def test_gradients_equal_those_of_whole_passes(name: str) -> None:
    model = Classifier(*TINY[name](), name)
    encoding, _ = problem(model)
    target = Target(torch.tensor([0, 1, 0]), None, "probability")
    points, weights = torch.tensor([0.2, 0.6, 0.9]), torch.tensor([0.5, 0.3, 0.2])
    embeds = model.ask(WordEmbeddings).embed(encoding)

    def path(text: int, positions: Tensor) -> Tensor:
        return positions[:, None, None] * embeds[text]

    words = model.ask(WordEmbeddings)
    words.path_gradients(encoding, path, points, weights, target)
    again: list[tuple[list[Tensor], Tensor]] = []
    assert rows_of_the_last_layer(
        model, lambda: again.append(words.path_gradients(encoding, path, points, weights, target))
    ) == {1}
    [(found, values)] = again
    slow, expected = RowGradients(model.passes.forward, model.budget).along(encoding, path, points, weights, target)
    close(found, slow)
    torch.testing.assert_close(values, expected, rtol=1e-5, atol=1e-6)
    assert all(gradient.abs().max() > 0 for gradient in found)


def test_a_model_that_reads_all_rows_is_run_whole() -> None:
    net, tokenizer = TINY["modernbert"]()
    net.config.classifier_pooling = "mean"
    model = Classifier(net, tokenizer, "mean")
    encoding, keeps = problem(model)
    for _ in range(2):
        close(model.masked_logits(encoding, keeps, "mask"), whole(model, encoding, keeps, "mask"))
    assert is_run_whole(model)


def test_a_model_that_reads_all_rows_is_run_whole_although_they_are_alike() -> None:
    net, tokenizer = TINY["modernbert"]()
    net.config.classifier_pooling = "mean"
    with torch.no_grad():
        table = net.get_input_embeddings().weight
        table.copy_(table[:1].expand_as(table))
    model = Classifier(net, tokenizer, "alike")
    assert is_run_whole(model)


def test_a_model_that_reads_all_rows_is_run_whole_although_it_says_next_to_nothing() -> None:
    """In 16 bits the tolerance is wider than what such a head says."""
    net, tokenizer = TINY["modernbert"]()
    net.config.classifier_pooling = "mean"
    with torch.no_grad():
        for parameter in net.classifier.parameters():
            parameter.mul_(1e-3)
    model = Classifier(net.to(torch.bfloat16), tokenizer, "next to nothing")
    assert is_run_whole(model)


def test_a_batch_of_one_token_decides_nothing() -> None:
    net, tokenizer = TINY["modernbert"]()
    net.config.classifier_pooling = "mean"
    model = Classifier(net, tokenizer, "mean")
    encoding, keeps = problem(model)
    one = torch.tensor([[7]])
    with torch.no_grad():
        model.passes.brief(batching.TokenBatch(one, torch.zeros_like(one), torch.tensor([1])))
    close(model.masked_logits(encoding, keeps, "mask"), whole(model, encoding, keeps, "mask"))


def test_hooks_of_others_are_called_once() -> None:
    model = Classifier(*TINY["bert"](), "bert")
    encoding, keeps = problem(model)
    layer = layer_stack(model.core)[-1]
    hooks = [
        layer.register_forward_pre_hook(lambda _module, args: (args[0] + 0.3, *args[1:])),
        layer.register_forward_hook(lambda _module, _args, output: output * 1.5),
    ]
    close(model.masked_logits(encoding, keeps, "mask"), whole(model, encoding, keeps, "mask"))
    assert not is_run_whole(model)
    for hook in hooks:
        hook.remove()
    close(model.masked_logits(encoding, keeps, "mask"), whole(model, encoding, keeps, "mask"))
    hook = layer.register_forward_pre_hook(lambda _module, args: (args[0] + 0.3, *args[1:]))
    close(model.masked_logits(encoding, keeps, "mask"), whole(model, encoding, keeps, "mask"))
    hook.remove()


def test_other_attention_is_run_whole_also_when_it_is_chosen_later() -> None:
    model = Classifier(*TINY["bert"](), "bert")
    encoding, keeps = problem(model)
    close(model.masked_logits(encoding, keeps, "mask"), whole(model, encoding, keeps, "mask"))
    assert not is_run_whole(model)
    model.core.set_attn_implementation("eager")
    close(model.masked_logits(encoding, keeps, "mask"), whole(model, encoding, keeps, "mask"))


def test_changed_weights_are_read_and_gradients_are_whole() -> None:
    model = Classifier(*TINY["electra"](), "electra")
    encoding, keeps = problem(model)
    before = model.masked_logits(encoding, keeps, "mask")
    with torch.no_grad():
        for parameter in layer_stack(model.core)[-1].parameters():
            parameter.mul_(1.3)
    after = model.masked_logits(encoding, keeps, "mask")
    assert not torch.allclose(before[0], after[0], atol=1e-3)
    close(after, whole(model, encoding, keeps, "mask"))
    embeds = model.ask(WordEmbeddings).embed(encoding).requires_grad_()
    model.ask(Passes).logits(encoding, embeds)[:, 0].sum().backward()
    assert embeds.grad is not None
    assert embeds.grad[:, 1].abs().max() > 0


def test_threads_at_once() -> None:
    """Hooks of one thread come and go while another calls the layer."""
    model = Classifier(*TINY["bert"](), "bert")
    encoding, keeps = problem(model)
    keeps = [rows[:4] for rows in keeps]
    model.budget.tokens = 32
    expected = model.masked_logits(encoding, keeps, "mask")

    def run(_: int) -> list[Tensor]:
        return model.masked_logits(encoding, keeps, "mask")

    switching = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(4) as pool:
            for found in pool.map(run, range(8)):
                close(found, expected)
    finally:
        sys.setswitchinterval(switching)
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.core.modules())


def test_another_thread_is_left_alone() -> None:
    model = Classifier(*TINY["bert"](), "bert")
    encoding, _ = problem(model)
    with torch.no_grad():
        expected = model.ask(Passes).logits(encoding)
    found: list[Tensor] = []

    def run() -> None:
        with torch.no_grad():
            found.append(model.ask(Passes).logits(encoding))

    def within(batch: batching.TokenBatch, embeds: Tensor | None) -> Tensor:
        other = threading.Thread(target=run)
        other.start()
        other.join()
        return model.passes.predict(batch, embeds)

    last_row, batch = LastRow(model.core), model.passes.batch_of(encoding)
    with torch.no_grad():
        last_row.predict(within, batch)
        # The other thread's pass, which is whole, comes between.
        assert 1 in rows_of_the_last_layer(model, lambda: last_row.predict(within, batch))
    for one in found:
        torch.testing.assert_close(one, expected)


@pytest.mark.parametrize("name", ["t5", "gpt2"])
def test_models_without_such_a_layer_are_run_whole(name: str) -> None:
    model = Classifier(*TINY[name](), name)
    encoding, keeps = problem(model)
    removal = model.removals[0]
    close(model.masked_logits(encoding, keeps, removal), whole(model, encoding, keeps, removal))
