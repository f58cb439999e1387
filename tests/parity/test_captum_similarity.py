"""captum computes the same gradients of the similarity of two texts, from the embeddings of both."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import raison
from tests.tiny import build_embedder

attr = pytest.importorskip("captum.attr")
pytestmark = pytest.mark.peer

PAIR = ("the old sailor told a story", "a modest story about the sea")


class Similarity(nn.Module):
    """Written out: two passes, two means, a cosine."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        vectors = [self.model(inputs_embeds=embeds).last_hidden_state.mean(1) for embeds in (first, second)]
        return nn.functional.cosine_similarity(*vectors)


@pytest.mark.parametrize(
    ("name", "peer", "settings"),
    [
        ("input_x_gradient", "InputXGradient", {}),
        ("integrated_gradients(steps=20)", "IntegratedGradients", {"n_steps": 20, "method": "gausslegendre"}),
    ],
)
def test_gradients_of_both_texts(name: str, peer: str, settings: dict[str, object]) -> None:
    model, tokenizer = build_embedder("bert")
    loaded = raison.load(model.double(), tokenizer, similarity="cosine")
    found = raison.explain(loaded, PAIR, name, unit="token", removal="mask", progress=False)
    table = model.get_input_embeddings()
    inputs = [tokenizer(text, return_tensors="pt")["input_ids"] for text in PAIR]
    special = set(tokenizer.all_special_ids)
    ends = tuple(table(ids).detach() for ids in inputs)
    if peer == "IntegratedGradients":
        masked = [
            torch.tensor([[token if token in special else tokenizer.mask_token_id for token in ids[0].tolist()]])
            for ids in inputs
        ]
        settings = settings | {"baselines": tuple(table(ids).detach() for ids in masked)}
    maps = getattr(attr, peer)(Similarity(model)).attribute(ends, **settings)
    expected = [
        score
        for ids, one in zip(inputs, maps, strict=True)
        for token, score in zip(ids[0].tolist(), one[0].sum(-1).tolist(), strict=True)
        if token not in special
    ]
    np.testing.assert_allclose(found.scores, expected, rtol=1e-5, atol=1e-7)
