"""A model without numbers is refused when it is loaded."""

import pytest
from torch import nn

import raison
from raison.core.errors import LoadError
from raison.models.loading.weights import check_weights
from tests.tiny import build, build_language_model


@pytest.mark.parametrize("parts", [build("bert"), build_language_model("llama")], ids=["bert", "llama"])
def test_a_model_on_the_device_meta_is_refused(parts: tuple[nn.Module, object]) -> None:
    model, tokenizer = parts
    name = next(name for name, _ in model.named_parameters())
    with pytest.raises(LoadError, match=f"have no numbers: {name} is on the device 'meta'. Load the model on another"):
        raison.load(model.to("meta"), tokenizer)


def test_weights_that_are_brought_for_each_pass_are_no_obstacle() -> None:
    model = nn.Sequential(nn.Linear(2, 2, device="meta"))
    with pytest.raises(LoadError, match=r"0\.weight"):
        check_weights(model, "linear")
    model[0]._hf_hook = object()
    check_weights(model, "linear")
