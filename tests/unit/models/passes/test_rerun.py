"""The engine that re-runs what lies above a replaced attention: what it computes, falls back to and leaves behind."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import Tensor

import raison
from raison.core.capabilities.attention import ReadableAttention
from raison.core.capabilities.attention_paths import ReplaceableAttention
from raison.core.capabilities.passes import Passes
from raison.core.errors import InputError, OutOfMemoryError, UnsupportedError
from raison.core.internals.attention import AttentionSite
from raison.integration import randomized
from raison.methods.rpi import Rpi
from raison.models.adapters.classifier import Classifier
from raison.models.passes import rerun
from raison.models.passes.rerun import UpperRunner, WholeRunner
from raison.models.stack import tap
from tests.attention_reference import build_any, double_throughout, problem_of
from tests.conftest import ALL
from tests.integration.test_lora import adapted
from tests.tiny import ENCODER_DECODERS, LANGUAGE_MODELS, TAPPED, TINY
from tests.toys import generators
from tests.unit.models.stack.test_tap_isolation import snapshot

TEXT, OTHER = "a dull plot , but the end is good", "the film is a quiet pleasure"
FAMILIES = (*(name for name in sorted(TAPPED) if name not in ENCODER_DECODERS), "modernbert mean")
ALIKE = ("roberta", "electra", "mistral", "qwen3")
"""Families whose layers are laid out as those of BERT or Llama."""
RPI = Rpi(baselines=3, steps=3, layers="top 2", variant="paper")


@dataclass(frozen=True)
class Found:
    """Five points of one layer, put together again."""

    runner: object
    points: list[int]
    attention: Tensor
    gradients: Tensor
    values: Tensor

    def check(self, other: "Found", tolerance: float) -> None:
        """The same within a share of the largest entry, which is not zero."""
        assert self.points == other.points
        for mine, theirs in ((self.attention, other.attention), (self.gradients, other.gradients)):
            scale = float(theirs.abs().max())
            assert scale > 1e-7
            torch.testing.assert_close(mine / scale, theirs / scale, rtol=0, atol=tolerance)
        torch.testing.assert_close(self.values, other.values, rtol=0, atol=tolerance)


def load(name: str) -> Classifier:
    loaded = raison.load(*build_any(name))
    assert isinstance(loaded, Classifier)
    return loaded


def site_of(model: Classifier, layer: int, text: str = TEXT) -> AttentionSite:
    (site,) = problem_of(model, [text]).attention_sites(0, lambda _: [layer])
    return site


def run_site(model: Classifier, site: AttentionSite) -> Found:
    """At five points that are noise on the layer's own attention, negative entries included."""
    noise = torch.from_numpy(np.random.default_rng(1).standard_normal((5, *site.probabilities.shape)))

    def path(points: Sequence[int]) -> Tensor:
        return site.probabilities + 0.3 * noise[list(points)].to(site.probabilities)

    parts = list(site.slopes(path, 5, problem_of(model, [TEXT]).target))
    return Found(
        type(site.runner),
        [point for part in parts for point in part.points],
        *(torch.cat([getattr(part, name) for part in parts]) for name in ("attention", "gradients", "values")),
    )


def whole(monkeypatch: pytest.MonkeyPatch, work: Callable[[], object]) -> object:
    """What comes out where no layer can be called alone."""

    def refuse(_core: object) -> list[object]:
        raise UnsupportedError("cannot re-run single layers", ["the test says so"])

    with monkeypatch.context() as patch:
        patch.setattr(rerun, "layer_stack", refuse)
        return work()


def maps(model: Classifier, method: Rpi = RPI, texts: Sequence[str] = (TEXT, OTHER)) -> Tensor:
    return method.candidates(problem_of(model, texts), generators(len(texts)))


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("layer", [0, 1, 2])
@pytest.mark.parametrize("name", FAMILIES)
def test_upper_layers_give_what_whole_passes_give(name: str, layer: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model = load(name)
    model.model.double()
    with double_throughout():
        found = run_site(model, site_of(model, layer))
        expected = whole(monkeypatch, lambda: run_site(model, site_of(model, layer)))
    assert (found.runner, expected.runner) == (UpperRunner, WholeRunner)
    found.check(expected, 1e-9)
    assert found.values.std() > 1e-6, "a model that ignores its attention would pass"


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("name", LANGUAGE_MODELS)
@pytest.mark.parametrize("layer", [0, 2])
def test_a_text_of_one_token(name: str, layer: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model = load(name)
    model.model.double()
    text = "a"
    with double_throughout():
        found = run_site(model, site_of(model, layer, text))
        expected = whole(monkeypatch, lambda: run_site(model, site_of(model, layer, text)))
    assert found.runner is UpperRunner
    found.check(expected, 1e-9)


@pytest.mark.parametrize("name", [name for name in FAMILIES if ALL or name not in ALIKE])
def test_a_site_describes_its_layer(name: str) -> None:
    model = load(name)
    encoding = model.encode([TEXT])
    with torch.no_grad(), model.ask(ReadableAttention).tap() as tapped:
        model.ask(Passes).logits(encoding)
    for layer in range(3):
        site, own = site_of(model, layer), tapped.probabilities[layer][0]
        alone = layer == 2 and not name.endswith(("mean", "t5_encoder"))
        assert site.layer == layer
        assert len(site.rows) == len(site.input_rows) == site.probabilities.shape[1] == (1 if alone else own.shape[1])
        reach = site_of(model, 1).read if alone else slice(None)
        torch.testing.assert_close(site.probabilities, own[:, reach], atol=1e-5, rtol=1e-4)
        torch.testing.assert_close(site.rows, model.ask(ReadableAttention).prediction_rows(encoding)[0, reach])
        assert site.input_rows.tolist() == encoding.scored[0, reach].float().tolist()


def test_a_head_that_reads_the_decoder_has_no_sites() -> None:
    assert not load("t5").offers(ReplaceableAttention)


def test_one_text_at_a_time() -> None:
    model = load("bert")
    with pytest.raises(InputError, match="one text at a time; got 2"):
        model.ask(ReplaceableAttention).attention_sites(model.encode([TEXT, OTHER]), lambda _: [0])


def _refuse(_self: UpperRunner, _attention: Tensor) -> Tensor:
    raise TypeError("missing an argument")


def _differ(self: UpperRunner, attention: Tensor) -> Tensor:
    return UpperRunner.kept(self, attention) + 0.05  # type: ignore[attr-defined]


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("wrong", [_refuse, _differ])
@pytest.mark.parametrize("name", ["bert", "llama", "modernbert mean"])
def test_where_re_runs_are_wrong_the_whole_model_runs(
    name: str, wrong: Callable[[UpperRunner, Tensor], Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected, model = maps(load(name)), load(name)
    monkeypatch.setattr(UpperRunner, "kept", UpperRunner.logits, raising=False)
    monkeypatch.setattr(UpperRunner, "logits", wrong)
    site = site_of(model, 2)
    assert isinstance(site.runner, WholeRunner)
    torch.testing.assert_close(maps(model), expected, atol=1e-5 * float(expected.abs().max()), rtol=1e-3)

    # It was tried once: what comes later is not asked again.
    monkeypatch.setattr(UpperRunner, "logits", UpperRunner.kept)  # type: ignore[attr-defined]
    assert isinstance(site_of(model, 2, OTHER).runner, WholeRunner)
    assert isinstance(site_of(model, 0).runner, UpperRunner)


def test_where_no_layer_can_be_called_alone_maps_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    model = load("gpt2")
    found = whole(monkeypatch, lambda: maps(model))
    torch.testing.assert_close(found, maps(model), atol=1e-5 * float(found.abs().max()), rtol=1e-3)


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("name", ["bert", "gpt2"])
@pytest.mark.parametrize("tokens", [1, 25])
def test_a_small_budget_gives_the_same_maps(name: str, tokens: int) -> None:
    small, large = load(name), load(name)
    small.budget.tokens = tokens
    expected = maps(large)
    torch.testing.assert_close(maps(small), expected, atol=1e-5 * float(expected.abs().max()), rtol=1e-3)


@pytest.mark.parametrize(("layer", "asked"), [(0, [[0, 1], [2, 3], [4]]), (2, [[0, 1, 2, 3, 4]])])
def test_batches_of_points_come_in_order_and_keep_to_the_budget(layer: int, asked: list[list[int]]) -> None:
    """A point of the last layer is one position, one below it as many as the text has tokens."""
    model, found = load("bert"), []
    model.budget.tokens = 2 * len(site_of(model, 0).rows)
    site = site_of(model, layer)

    def path(points: Sequence[int]) -> Tensor:
        found.append(list(points))
        return site.probabilities.expand(len(points), -1, -1, -1)

    parts = list(site.slopes(path, 5, _target(model)))
    assert found == asked == [list(part.points) for part in parts]


def _target(model: Classifier) -> object:
    return problem_of(model, [TEXT]).target


@pytest.mark.parametrize("layers", ["last", 0])
def test_out_of_memory_halves_and_goes_on(layers: str | int, monkeypatch: pytest.MonkeyPatch) -> None:
    model, method = load("bert"), Rpi(baselines=3, steps=3, layers=layers, variant="paper")
    expected, before = maps(model, method), model.budget.tokens
    plain, sizes = UpperRunner.logits, []

    def small(self: UpperRunner, attention: Tensor) -> Tensor:
        if len(attention) > 2:
            raise torch.OutOfMemoryError("no room")
        sizes.append(len(attention))
        return plain(self, attention)

    monkeypatch.setattr(UpperRunner, "logits", small)
    found = maps(model, method)
    torch.testing.assert_close(found, expected, atol=1e-5 * float(expected.abs().max()), rtol=1e-3)
    assert sum(sizes) == 2 * 9
    assert model.budget.tokens < before


def test_out_of_memory_on_one_point_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    model = load("bert")
    maps(model)

    def none(_self: UpperRunner, _attention: Tensor) -> Tensor:
        raise torch.OutOfMemoryError("no room")

    monkeypatch.setattr(UpperRunner, "logits", none)
    with pytest.raises(OutOfMemoryError, match="not even one text fits into the device's memory: shorten it"):
        maps(model)


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("name", ["bert", "llama", "modernbert mean"])
@pytest.mark.parametrize("layer", [0, 2])
def test_an_exception_on_the_path_leaves_nothing_behind(name: str, layer: int) -> None:
    model = load(name)
    model.budget.tokens = 1
    before, state = snapshot(model.model), torch.get_rng_state()

    def path(points: Sequence[int]) -> Tensor:
        if points[0] == 2:
            raise KeyError("on purpose")
        return site.probabilities.expand(len(points), -1, -1, -1)

    site = site_of(model, layer)
    with pytest.raises(KeyError, match="on purpose"):
        list(site.slopes(path, 5, _target(model)))
    assert snapshot(model.model) == before
    assert not any(tap.tapped(config) for config in tap.configs_of(model.model))
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("layer", [0, 2])
def test_an_exception_in_the_model_leaves_nothing_behind(layer: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model = load("bert")
    site, before = site_of(model, layer), snapshot(model.model)

    def broken(_states: Tensor) -> Tensor:
        raise KeyError("on purpose")

    with monkeypatch.context() as patch:
        # Not setattr: older versions of pytest leave the attribute behind.
        patch.setitem(vars(model.core.classifier), "forward", broken)
        for work in (lambda: site_of(model, layer), lambda: run_site(model, site)):
            with pytest.raises(KeyError, match="on purpose"):
                work()
    assert snapshot(model.model) == before
    assert not any(tap.tapped(config) for config in tap.configs_of(model.model))


def test_a_model_in_training_is_explained_as_in_evaluation_and_trains_on() -> None:
    model, other = load("bert"), load("bert")
    model.model.train()
    model.core.classifier.eval()
    before, state = [module.training for module in model.model.modules()], torch.get_rng_state()
    torch.testing.assert_close(maps(model), maps(other), rtol=0, atol=1e-9)
    assert [module.training for module in model.model.modules()] == before
    assert torch.equal(torch.get_rng_state(), state)
    assert all(parameter.grad is None for parameter in model.model.parameters())


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("name", ["bert", "gpt2", "modernbert mean"])
@pytest.mark.parametrize("mode", [torch.inference_mode, torch.no_grad])
def test_inside_a_callers_mode_without_gradients(name: str, mode: Callable[[], object]) -> None:
    expected = raison.explain(load(name), TEXT, RPI, progress=False)
    fresh = load(name)
    with mode():
        found = raison.explain(fresh, TEXT, RPI, progress=False)
    assert found.scores == pytest.approx(expected.scores, rel=1e-3, abs=1e-6)
    assert any(found.scores)


@pytest.mark.parametrize("name", ["bert", "llama"])
def test_a_frozen_model(name: str) -> None:
    model = load(name)
    model.model.requires_grad_(False)
    expected = maps(load(name))
    torch.testing.assert_close(maps(model), expected, atol=1e-5 * float(expected.abs().max()), rtol=1e-3)


@pytest.mark.parametrize("layer", [0, 2])
@pytest.mark.parametrize("name", ["bert", "llama"])
def test_half_precision(name: str, layer: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Points and gradients are in single precision around a model in bfloat16."""
    model = load(name)
    model.model.to(torch.bfloat16)
    found = run_site(model, site_of(model, layer))
    expected = whole(monkeypatch, lambda: run_site(model, site_of(model, layer)))
    assert found.runner is UpperRunner
    assert found.gradients.dtype == found.values.dtype == found.attention.dtype == torch.float32
    found.check(expected, 0.1)
    assert torch.isfinite(maps(model)).all()


@pytest.mark.parametrize(
    ("family", "targets", "head"),
    [("bert", ["query", "value", "dense"], "classifier"), ("llama", ["q_proj", "v_proj", "down_proj"], "score")],
)
def test_a_lora_model(family: str, targets: list[str], head: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lora, tokenizer = adapted(family, targets, head)
    model = raison.load(lora, tokenizer)
    assert isinstance(model, Classifier)
    for layer in range(3):
        found = run_site(model, site_of(model, layer))
        assert found.runner is UpperRunner
        found.check(whole(monkeypatch, lambda at=layer: run_site(model, site_of(model, at))), 1e-3)
    with lora.disable_adapter():
        bare = maps(model)
    assert not torch.allclose(maps(model), bare, atol=1e-2 * float(bare.abs().max())), "an adapter without effect"


@pytest.mark.parametrize("layer", [0, 2])
def test_sites_of_several_texts_do_not_mix(layer: int) -> None:
    model = load("gpt2")
    expected = run_site(model, site_of(model, layer))
    first = site_of(model, layer)
    second = site_of(model, layer, OTHER)
    apart = run_site(model, second)
    run_site(model, first).check(expected, 1e-6)
    run_site(model, second).check(apart, 1e-6)
    assert apart.values.tolist() != pytest.approx(expected.values.tolist(), abs=1e-4)
    together = maps(model, RPI, (TEXT, OTHER))[:, 1]
    length = len(model.encode([OTHER]).input_ids[0])
    alone = RPI.candidates(problem_of(model, [OTHER]), generators(2)[1:])[:, 0]
    torch.testing.assert_close(together[:, :length], alone, rtol=1e-3, atol=1e-6)


def test_a_first_use_is_compared_once_per_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a comparison runs the whole model on a point."""
    model, compared = load("bert"), []
    plain = WholeRunner.logits

    def counted(whole: WholeRunner, attention: Tensor) -> Tensor:
        compared.append(whole)
        return plain(whole, attention)

    monkeypatch.setattr(WholeRunner, "logits", counted)
    maps(model)
    assert len(compared) == 2
    maps(model, Rpi(baselines=1, steps=1, layers="bottom 2", variant="paper"))
    maps(model, Rpi(baselines=1, steps=1, layers="bottom 2", variant="paper"))
    assert len(compared) == 3


def test_few_baselines_in_memory_give_the_same_maps(monkeypatch: pytest.MonkeyPatch) -> None:
    model = raison.load(*TINY["bert"]())
    whole = raison.explain(model, TEXT, "rpi(baselines=5, steps=3, layers=0)")
    monkeypatch.setattr(randomized, "NUMBERS", 1)
    assert raison.explain(model, TEXT, "rpi(baselines=5, steps=3, layers=0)").scores == pytest.approx(
        whole.scores, abs=1e-6
    )
