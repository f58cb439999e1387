"""What counts as a change of a model, and what does not."""

from collections.abc import Callable

import pytest
import torch
from torch import nn
from transformers import PreTrainedModel

from raison.models.stack.fingerprint import fingerprint
from tests.tiny import TINY


def _model() -> PreTrainedModel:
    return TINY["llama"]()[0]


def test_passes_and_gradients_are_no_change() -> None:
    model = _model()
    before = fingerprint(model)
    model(input_ids=torch.tensor([[5, 9, 7, 3]])).logits.sum().backward()
    assert fingerprint(model) == before


def _write(model: PreTrainedModel) -> None:
    with torch.no_grad():
        model.score.weight.add_(1)


def _write_data(model: PreTrainedModel) -> None:
    model.score.weight.data.add_(1)


def _replace(model: PreTrainedModel) -> None:
    model.score = nn.Linear(model.config.hidden_size, model.config.num_labels, bias=False)


def _hook(model: PreTrainedModel) -> None:
    model.model.layers[0].register_forward_hook(lambda _module, _args, _output: None)


@pytest.mark.parametrize("change", [_write, _write_data, _replace, _hook, PreTrainedModel.train, PreTrainedModel.half])
def test_every_change_of_a_model_changes_it(change: Callable[[PreTrainedModel], None]) -> None:
    model = _model()
    before = fingerprint(model)
    change(model)
    assert fingerprint(model) != before
