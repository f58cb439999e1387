"""Errors of a model's own code are told as such; others pass unchanged."""

from copy import deepcopy
from types import FunctionType

import pytest
import torch
from transformers import BertForSequenceClassification

import raison
from raison.core.errors import ForwardError, InputError
from raison.models.passes.forward_errors import as_forward_error
from tests.tiny import TINY


def look_up_nothing() -> None:
    torch.nn.functional.embedding(torch.tensor([7]), torch.zeros(2, 3))


def of_package(name: str) -> FunctionType:
    """The function, as code of another package."""
    return FunctionType(look_up_nothing.__code__, {"__name__": name, "torch": torch})


def model_fails(model: BertForSequenceClassification, error: Exception) -> None:
    def fails() -> None:
        raise error

    of_bert = {"__name__": "transformers.models.bert.modeling_bert"}
    with as_forward_error(model):
        FunctionType(fails.__code__, of_bert, closure=fails.__closure__)()


class Own(BertForSequenceClassification):
    """A model of another package: that of the tests."""


@pytest.mark.parametrize(
    ("package", "kind"),
    [("transformers.models.bert.modeling_bert", BertForSequenceClassification), (__name__, Own)],
)
def test_an_error_in_the_models_code_is_told_in_one_line(
    package: str, kind: type[BertForSequenceClassification]
) -> None:
    model = kind(TINY["bert"]()[0].config)
    failure = pytest.raises(ForwardError, match=f"{kind.__name__} fails: IndexError")
    with failure as caught, as_forward_error(model):
        of_package(package)()
    assert isinstance(caught.value.__cause__, IndexError)
    assert len(str(caught.value).splitlines()) == 1


def test_layers_of_several_precisions_have_a_way_out() -> None:
    model, tokenizer = TINY["bert"]()
    model.bert.to(torch.bfloat16)
    with (
        torch.autocast("cpu", torch.bfloat16),
        pytest.raises(ForwardError, match=r"of bfloat16 and float32, .* such as model\.to\(torch\.float32\)\.$"),
    ):
        raison.explain(raison.load(model, tokenizer), "a quiet film", "occlusion")
    raison.explain(raison.load(model.to(torch.float32), tokenizer), "a quiet film", "occlusion")


def test_the_way_out_is_the_largest_precision() -> None:
    model = TINY["bert"]()[0]
    model.bert.pooler.to(torch.float8_e4m3fn)
    with pytest.raises(ForwardError, match=r"of float8_e4m3fn and float32, .* such as model\.to\(torch\.float32\)\.$"):
        model_fails(model, RuntimeError("expected the same dtype"))


def test_a_model_made_in_inference_mode_has_a_way_out() -> None:
    with torch.inference_mode():
        model, tokenizer = TINY["bert"]()
    with pytest.raises(ForwardError, match=r"made inside torch\.inference_mode\(\).* copy\.deepcopy\(model\)"):
        raison.explain(raison.load(model, tokenizer), "a quiet film", "saliency")
    raison.explain(raison.load(deepcopy(model), tokenizer), "a quiet film", "saliency")


@pytest.mark.parametrize("package", ["raison.models.stack.tap", "of_a_callers_hook"])
def test_an_error_in_other_code_is_not_the_models(package: str) -> None:
    with pytest.raises(IndexError), as_forward_error(TINY["bert"]()[0]):
        of_package(package)()


@pytest.mark.parametrize(
    "error",
    [
        InputError("a text"),
        torch.OutOfMemoryError("full"),
        KeyboardInterrupt(),
    ],
)
def test_what_has_an_answer_of_its_own_passes_unchanged(error: BaseException) -> None:
    with pytest.raises(type(error)) as caught, as_forward_error(TINY["bert"]()[0]):
        raise error
    assert caught.value is error


def test_a_processor_without_room_is_out_of_memory_like_a_device() -> None:
    with pytest.raises(torch.OutOfMemoryError, match="allocate"), as_forward_error(TINY["bert"]()[0]):
        torch.empty(10**15)
