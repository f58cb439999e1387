"""A BERT's weights in other classes: the same states, a new head, and nothing else changed."""

import pytest
import torch
from transformers import BertConfig, BertForSequenceClassification, GPT2Config, GPT2ForSequenceClassification

from raison.core.errors import LoadError
from raison.models.loading.weight_transfer import ARCHITECTURES, transferred

CONFIG = BertConfig(
    vocab_size=30,
    hidden_size=16,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=20,
    max_position_embeddings=12,
    num_labels=3,
)
IDS = torch.tensor([[2, 7, 9, 3, 11, 3], [2, 8, 3, 5, 3, 0]])
MASK = (IDS != 0).long()


@pytest.mark.parametrize("segments", [1, 2])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
@torch.no_grad()
def test_the_states_are_the_berts(architecture: str, segments: int) -> None:
    torch.manual_seed(1)
    base = BertForSequenceClassification(CONFIG).eval()
    for parameter in base.parameters():  # Biases and norms start as zeros and ones, which hide a wrong place.
        parameter.normal_(std=0.5)
    before = torch.get_rng_state()
    model = transferred(base, architecture, seed=3)
    assert torch.equal(torch.get_rng_state(), before)
    assert model.config.num_labels == 3
    types = {"token_type_ids": torch.tensor([[0, 0, 0, 0, 1, 1], [0, 0, 0, 1, 1, 0]]) * (segments - 1)}
    expected = base.bert(IDS, attention_mask=MASK, **types).last_hidden_state
    given = types if architecture != "distilbert" else {}
    states = model.base_model(IDS, attention_mask=MASK, **given)[0]
    close = torch.allclose(states[MASK.bool()], expected[MASK.bool()], atol=1e-5)
    # DistilBERT does not know of a second segment.
    assert close is (architecture != "distilbert" or segments == 1)


def test_the_head_is_drawn_by_the_seed() -> None:
    base = BertForSequenceClassification(CONFIG)
    first, same, other = (transferred(base, "electra", seed).classifier.out_proj.weight for seed in (0, 0, 1))
    assert torch.equal(first, same)
    assert not torch.equal(first, other)


def test_only_a_bert_is_transferred() -> None:
    gpt2 = GPT2ForSequenceClassification(GPT2Config(vocab_size=9, n_embd=8, n_layer=1, n_head=2))
    with pytest.raises(LoadError, match="only the weights of a BERT can be loaded into roberta, not those of a gpt2"):
        transferred(gpt2, "roberta", 0)
