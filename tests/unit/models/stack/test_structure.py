"""What is known of a model's parts, and of what others have put on them."""

import functools

import torch
from torch import Tensor, nn

from raison.models.stack.hooks import hooked
from raison.models.stack.structure import has_unseen_state, is_foreign, structure_of
from tests.tiny import TINY


class _Own(nn.Module):
    def forward(self, rows: Tensor) -> Tensor:
        return rows


class _Packed(_Own):
    """Stands for a linear layer, as quantised ones do."""

    in_features, out_features = 2, 2


def test_parts_of_libraries_and_what_stands_for_a_linear_layer_are_known() -> None:
    model = TINY["bert"]()[0]
    assert not any(map(is_foreign, model.modules()))
    assert [is_foreign(one) for one in (_Own(), _Packed(), nn.Linear(2, 2))] == [True, False, False]


def test_hooks_and_functions_of_others_may_depend_on_anything() -> None:
    model = TINY["llama"]()[0]
    model(input_ids=torch.tensor([[5, 9]]), output_hidden_states=True)
    assert not has_unseen_state(model), "transformers' own hooks are known"
    with hooked([model.model], before=lambda *_: None):
        assert not has_unseen_state(model), "so are the project's"
    handle = model.model.register_forward_hook(functools.partial(lambda *_: None))
    assert has_unseen_state(model)
    handle.remove()
    layer = model.model.layers[0].mlp
    layer.forward = functools.update_wrapper(functools.partial(layer.forward), layer.forward)
    assert not has_unseen_state(model), "wrapped by a library that keeps its name, as accelerate does"
    layer.forward = lambda rows: rows
    assert has_unseen_state(model)


def test_the_structure_changes_with_the_kind_of_a_module() -> None:
    model = TINY["bert"]()[0]
    before = structure_of(model)
    model.train()
    assert structure_of(model) == before
    model.bert.pooler = _Own()
    assert structure_of(model) != before
