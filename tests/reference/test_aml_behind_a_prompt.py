"""AML on a language model that classifies by completion: only the text is masked, the prompt is run once."""

import copy
from pathlib import Path

import pytest
import torch
from torch import Tensor

import raison
from raison.core.capabilities.embeddings import WordEmbeddings
from raison.core.capabilities.passes import Passes
from raison.explaining.batch import prepare
from raison.explaining.settings import Settings
from raison.masking.explainer import find
from raison.masking.substitutes import Substitutes
from raison.methods.aml import Aml
from raison.models.adapters.classifier import Classifier
from raison.numerics.losses.attributive_masking import LossWeights, MaskSize
from raison.training.preparation.masks import MaskedTexts
from tests.explainers import WEIGHTS, maps_of, problem_of, untrained
from tests.tiny import build_language_model

TEXTS = (
    "a dull plot, but the ending is good",
    "a quiet film",
    "dull",
    "nobody believed the old sailor, and the music was terrible!",
)
SEARCHED = LossWeights(**WEIGHTS)


def prompted(folder: Path) -> Classifier:
    prompt = raison.Prompt(
        name="film",
        task="What is it? Say it.",
        shot="{text} :{label}",
        labels={"good": " good", "bad": " bad"},
        shots=(("good end", "good"), ("dull", "bad")),
        scoring="first",
    )
    adapter = raison.load(*build_language_model("llama"), prompt=prompt)
    assert isinstance(adapter, Classifier)
    untrained(adapter, folder)
    return adapter


def completion_loss(adapter: Classifier, text: str, a: Tensor, kind: MaskSize) -> tuple[float, Tensor]:
    """Equation 4 with whole passes of the plain language model in float64: only the text's tokens are masked."""
    model = copy.deepcopy(adapter.model).double()
    labels = [ids[0] for ids in adapter.readout.label_ids]
    encoding = adapter.encode([text], "word")
    table = model.get_input_embeddings().weight
    x, m = table[encoding.input_ids[0]], table[adapter.tokenizer.unk_token_id]

    def probabilities(embeds: Tensor) -> Tensor:
        return model(inputs_embeds=embeds[None]).logits[0, -1, labels].softmax(-1)

    with torch.no_grad():
        y = probabilities(x)
        masked, inverse = x.clone(), x.clone()
        for token, unit in enumerate(encoding.unit_ids[0].tolist()):
            if unit >= 0:
                masked[token] = a[unit] * x[token] + (1 - a[unit]) * m
                inverse[token] = (1 - a[unit]) * x[token] + a[unit] * m
        p, q = probabilities(masked), probabilities(inverse)
    size = a.mean() if kind == "l1" else -(1 - a).log().mean()
    total = -(y * p.log()).sum() - 0.7 * (1 - q[y.argmax()]).log() + 0.4 * size
    return float(total), y


@pytest.mark.parametrize("kind", ["cross_entropy", "l1"])
def test_a_prompt_stays_visible(kind, tmp_path):
    """The prompt is run once and stored; the losses are those of whole passes."""
    adapter = prompted(tmp_path)
    assert adapter.removals[0] == "unk"
    explainer = find(adapter, str(tmp_path), None)
    texts = prepare(adapter, TEXTS, Settings(unit="word"))
    assert texts.encoding.prefix_length > 0
    module = MaskedTexts(explainer.attributor, texts, Substitutes("unk"), "max").eval()
    shares = module.shares()
    with torch.no_grad():
        found = module(torch.arange(len(TEXTS)), SEARCHED, kind)
    for row, text in enumerate(TEXTS):
        own = shares[row, : texts.encoding.unit_counts[row]]
        expected, y = completion_loss(adapter, text, own, kind)
        assert found[row].item() == pytest.approx(expected, abs=2e-4)
        torch.testing.assert_close(texts.full[row].softmax(-1).double(), y, atol=1e-4, rtol=0)
        # G reads the text alone, with its own tokens: no prompt.
        assert explainer.attributor.encode([text]).input_ids.shape[1] < texts.encoding.lengths[row]


def test_logits_at_behind_a_stored_prompt_equal_logits(tmp_path):
    adapter = prompted(tmp_path)
    encoding = adapter.encode(TEXTS, "word")
    before = encoding.prefix_length
    assert before > 0
    noise = torch.randn(adapter.ask(WordEmbeddings).embed(encoding).shape, generator=torch.Generator().manual_seed(3))
    noise[:, :before] = 0
    embeds = (adapter.ask(WordEmbeddings).embed(encoding) + 0.3 * noise).requires_grad_()
    found, plain = adapter.ask(WordEmbeddings).logits_at(encoding, embeds), adapter.ask(Passes).logits(encoding, embeds)
    torch.testing.assert_close(found, plain, atol=1e-4, rtol=1e-4)
    own, whole = (torch.autograd.grad(logits.square().sum(), embeds)[0] for logits in (found, plain))
    torch.testing.assert_close(own[:, before:], whole[:, before:], atol=1e-3, rtol=1e-3)
    assert whole[:, before:].abs().max() > 1e-2
    assert not own[:, :before].any(), "the prompt was run again"


def test_fine_tuning_behind_a_prompt_lowers_the_loss_in_any_batch(tmp_path):
    adapter = prompted(tmp_path)
    method = Aml(str(tmp_path), steps=4)
    together = maps_of(problem_of(adapter, TEXTS, "word"), method)
    for text, maps in zip(TEXTS, together, strict=True):
        (alone,) = maps_of(problem_of(adapter, [text], "word"), method)
        torch.testing.assert_close(maps, alone, atol=1e-4, rtol=0)
        first, last = (completion_loss(adapter, text, a, "cross_entropy")[0] for a in (maps[0], maps[-1]))
        assert last < first
