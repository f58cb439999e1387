"""AttnLRP and the authors' own lxt give the same relevance.

lxt 2.1 does not import with transformers 5: it brings a copy of an older BERT, and puts a plain dict in the place of
the table of attention functions. Its rules and patches themselves work, and are loaded from their files. It is not
among the development dependencies, for it asks for a dozen large packages: `pip install --no-deps lxt`.
"""

import sys
from collections.abc import Callable
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
from torch import nn
from transformers.models.gpt2 import modeling_gpt2
from transformers.models.llama import modeling_llama
from transformers.models.qwen3 import modeling_qwen3

import raison
from tests.tiny import TINY

LXT = find_spec("lxt")
pytestmark = [
    pytest.mark.peer,
    pytest.mark.skipif(LXT is None or LXT.origin is None, reason="lxt is not installed"),
]

TEXT = "the film is not a quiet pleasure , it is a loud one"
GATED = {"llama": (modeling_llama, "Llama"), "qwen3": (modeling_qwen3, "Qwen3")}


@pytest.fixture
def patches(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """lxt's patches, without its packages' __init__ files."""
    folder = Path(LXT.origin).parent / "efficient"
    for package in ("lxt", "lxt.efficient"):
        monkeypatch.setitem(sys.modules, package, ModuleType(package))
    for name in ("rules", "patches"):
        spec = spec_from_file_location(f"lxt.efficient.{name}", folder / f"{name}.py")
        loaded = module_from_spec(spec)
        monkeypatch.setitem(sys.modules, spec.name, loaded)
        spec.loader.exec_module(loaded)
    return loaded


class Wrapped(dict):
    """The table of attention functions with lxt's factors on queries, keys and values."""

    def __init__(self, table: object, wrap: Callable) -> None:
        super().__init__()
        self.table, self.wrap = table, wrap

    def get_interface(self, name: str, default: Callable) -> Callable:
        return self.wrap(self.table.get_interface(name, default))


@pytest.mark.parametrize("name", ["llama", "qwen3", "gpt2"])
def test_attn_lrp(name: str, patches: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    model, tokenizer = TINY[name]()
    loaded = raison.load(model.double(), tokenizer)
    found = raison.explain(loaded, TEXT, "attn_lrp", of="logit", unit="token")
    plain = relevance(model, tokenizer)
    if name in GATED:
        modeling, prefix = GATED[name]
        monkeypatch.setattr(getattr(modeling, f"{prefix}MLP"), "forward", patches.gated_mlp_forward)
        monkeypatch.setattr(getattr(modeling, f"{prefix}RMSNorm"), "forward", patches.rms_norm_forward)
    else:
        modeling = modeling_gpt2
        activated = sys.modules["lxt.efficient.rules"].identity_rule_implicit
        monkeypatch.setattr(
            modeling.GPT2MLP, "forward", lambda self, states: self.c_proj(activated(self.act, self.c_fc(states)))
        )
        monkeypatch.setattr(nn.LayerNorm, "forward", patches.layer_norm_forward)
    table = Wrapped(modeling.ALL_ATTENTION_FUNCTIONS, patches.wrap_attention_forward)
    monkeypatch.setattr(modeling, "ALL_ATTENTION_FUNCTIONS", table)
    expected = relevance(model, tokenizer)
    owners = loaded.encode([TEXT], "token").unit_ids[0].numpy()
    # A space that is a token of its own belongs to the word after it.
    of_units = [expected[owners == unit].sum() for unit in range(len(found.scores))]
    # lxt's RMS norm rounds to single precision, as transformers' does.
    np.testing.assert_allclose(found.scores, of_units, atol=1e-6, rtol=1e-4)
    assert np.abs(expected - plain).max() > 1e-3, "rules that change nothing would agree with any"


def relevance(model: nn.Module, tokenizer: object) -> np.ndarray:
    """Embedding times the gradient of the greatest logit, per token."""
    ids = tokenizer(TEXT, return_tensors="pt")["input_ids"]
    embeds = model.get_input_embeddings()(ids).detach().requires_grad_()
    logits = model(inputs_embeds=embeds).logits[0]
    (gradient,) = torch.autograd.grad(logits[logits.argmax()], embeds)
    return (embeds * gradient).sum(-1)[0].detach().numpy()
