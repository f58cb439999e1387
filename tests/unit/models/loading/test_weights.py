"""A model without numbers is refused when it is loaded."""

import pytest
import torch
from torch import nn

import raison
from raison.core.errors import LoadError
from raison.models.loading.weights import check_weights
from tests.tiny import build, build_language_model


@pytest.mark.parametrize("parts", [build("bert"), build_language_model("llama")], ids=["bert", "llama"])
def test_a_model_on_the_device_meta_is_refused(parts: tuple[nn.Module, object]) -> None:
    model, tokenizer = parts
    with pytest.raises(
        LoadError, match=r"have no numbers: [\w.]+ is on the device 'meta'\. Load the model with from_pretrained"
    ):
        raison.load(model.to("meta"), tokenizer)


def test_weights_that_are_brought_for_each_pass_are_no_obstacle() -> None:
    model = nn.Sequential(nn.Linear(2, 2, device="meta"))
    with pytest.raises(LoadError, match=r"0\.weight"):
        check_weights(model, "linear")
    model[0]._hf_hook = object()
    check_weights(model, "linear")
    # A hook of accelerate may bring the weights of the modules inside its own.
    outer = nn.Sequential(nn.Sequential(nn.Sequential(nn.Linear(2, 2, device="meta"))))
    outer[0]._hf_hook = object()
    check_weights(outer, "linear")


def test_buffers_without_numbers_are_named_too() -> None:
    model = nn.Sequential(nn.Linear(2, 2))
    model[0].register_buffer("angles", torch.zeros(2, device="meta"), persistent=False)
    with pytest.raises(LoadError, match=r"0\.angles is on the device 'meta'"):
        check_weights(model, "linear")
