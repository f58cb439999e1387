"""What stands for an absent unit of a decoder by default, and what is said of one whose numbers are not finite."""

import pytest
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast

import raison
from raison.core.errors import NonFiniteError
from raison.report.explanations.terminal import explanation_plain
from tests.prompted import DAY
from tests.tiny import LANGUAGE_MODELS, build, build_language_model

PROMPT = "the old sailor told a modest story"
MASK, DOTS = "<|never trained|>", " ..."


def with_tokens(
    made: tuple[PreTrainedModel, PreTrainedTokenizerFast], *, mask: bool, dots: bool
) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """The model with a mask token that it never saw, and with one token for three dots."""
    model, tokenizer = made
    if mask:
        tokenizer.add_special_tokens({"mask_token": MASK})
    if dots:
        tokenizer.add_tokens([DOTS, "..."])
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model.resize_token_embeddings(len(tokenizer), mean_resizing=False)
    return model, tokenizer


@pytest.mark.parametrize("name", LANGUAGE_MODELS)
@pytest.mark.parametrize("kind", ["head", "prompt", "writes"])
@pytest.mark.parametrize("dots", [True, False])
def test_a_decoder_skips_a_mask_token_that_it_never_saw(name: str, kind: str, dots: bool) -> None:
    made = with_tokens(build(name) if kind == "head" else build_language_model(name), mask=True, dots=dots)
    loaded = raison.load(*made, prompt=DAY if kind == "prompt" else None)
    further = {"output": " about the sea"} if kind == "writes" else {}
    found = raison.explain(loaded, PROMPT, "occlusion", **further)
    unknown = made[1].unk_token_id != made[1].eos_token_id
    assert found.removal == ("ellipsis" if dots else "unk" if unknown else "delete")
    assert found.scores == raison.explain(loaded, PROMPT, "occlusion", removal=found.removal, **further).scores
    # It is said, and the mask token is still there for who asks.
    shown = explanation_plain(found)
    assert found.removal in shown
    assert found.removal in found.to_html()
    asked = raison.explain(loaded, PROMPT, "occlusion", removal="mask", **further)
    assert asked.removal == "mask"
    assert asked.scores != found.scores


@pytest.mark.parametrize("name", LANGUAGE_MODELS)
def test_masking_metrics_follow_the_removal_of_a_decoders_explanation(name: str) -> None:
    loaded = raison.load(*with_tokens(build(name), mask=True, dots=True))
    texts = ["the actors are brilliant", "it is dull , and the jokes are weak", "a moving film with an ending"]
    for removal in ("unk", "ellipsis", "mask"):
        found = raison.explain(loaded, texts, "occlusion", removal=removal)
        metrics = ["log_odds", *(f"log_odds(removal='{other}')" for other in ("unk", "ellipsis"))]
        free, unknown, dots = (one.values for one in raison.evaluate(loaded, found, metrics).metrics)
        assert (free == unknown) is (removal == "unk")
        assert (free == dots) is (removal == "ellipsis")


@pytest.mark.parametrize("name", LANGUAGE_MODELS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
@pytest.mark.parametrize("kind", ["given", "own", "prompt"])
def test_a_writer_without_finite_numbers_is_named_with_the_way_out(name: str, dtype: torch.dtype, kind: str) -> None:
    model, tokenizer = build_language_model(name)
    with torch.no_grad():
        # Beyond the largest number of float16; in float32 the weights themselves are broken.
        model.get_input_embeddings().weight.mul_(1e6 if dtype is torch.float16 else float("nan"))
    model = model.to(dtype)
    says = "bfloat16 or float32" if dtype is torch.float16 else "Check the weights"

    def ask() -> None:
        if kind == "prompt":
            raison.load(model, tokenizer, prompt=DAY)
        else:
            raison.explain(raison.load(model, tokenizer), PROMPT, output=" about" if kind == "given" else None)

    with pytest.raises(NonFiniteError, match=f"NaN or infinite logits.*{says}"):
        ask()
