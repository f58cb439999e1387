"""The attribution model of attributive masking: an encoder that reads a text and its prediction, and scores tokens."""

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from threading import Lock
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Float
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from raison.core.errors import UnsupportedError
from raison.core.inputs.encoding import Encoding
from raison.core.inputs.unit import Text
from raison.models.derived.low_rank import RowLinear, add_low_rank
from raison.models.families import family_of
from raison.models.passes.given_embeddings import given_embeddings
from raison.models.stack.eval_mode import evaluating
from raison.models.stack.hooks import held_still
from raison.models.stack.tap import configs_of, untapped_copy
from raison.models.tokens.encoder import TextEncoder
from raison.models.tokens.max_tokens import max_tokens

DROPOUT = 0.1
"""Dropout before the head in training, as in the published code."""
FIXED = ("prediction", "labels", "substitute")
"""Parameters shared by all texts: frozen while fine-tuning on a single text."""


class Attributor(nn.Module):
    """G(x, y): one score between 0 and 1 per token of a text, given the explained model's probabilities.

    The prediction is one more token, put after the text's last: z_0 + sum_j y_j z_j (Barkan et al. 2024, AML, section
    3.3), z_0 being `prediction` and z_j the rows of `labels`. Every token's last hidden state goes through the same
    d -> d -> 1 network with tanh and sigmoid.

    `rank` None trains the whole backbone, a number adds low-rank matrices to its linear layers and freezes the rest.
    `substitute` is a learned embedding for masked tokens, of the explained model's size, if requested. `stacks` says
    whether the tuned parameters of many texts can be stacked, so that each row has its own.
    """

    def __init__(
        self,
        backbone: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        classes: int,
        rank: int | None,
        substitute: Float[Tensor, " hidden"] | None = None,
    ) -> None:
        super().__init__()
        self.backbone = backbone
        self._offset = family_of(backbone).position_offset
        table: Tensor = backbone.get_input_embeddings().weight  # type: ignore[assignment]
        features = table.shape[1]
        limit = max_tokens(backbone.config, tokenizer.model_max_length)
        # One position is the prediction's.
        self.encoder = TextEncoder(tokenizer, None if limit is None else limit - 1)
        self._takes_types = "token_type_ids" in tokenizer.model_input_names
        hidden = _hidden_size(backbone)
        deviation = getattr(backbone.config, "initializer_range", 0.02)
        self.prediction = nn.Parameter(torch.randn(features) * deviation)
        self.labels = nn.Parameter(torch.randn(classes, features) * deviation)
        self.substitute = None if substitute is None else nn.Parameter(substitute.detach().clone())
        self.dropout = nn.Dropout(DROPOUT)
        self.hidden = RowLinear(hidden, hidden)
        self.output = RowLinear(hidden, 1)
        # Per-row parameters have the row on the first axis.
        self.stacks = rank is not None and not family_of(backbone).turned_inside
        if rank is not None:
            # The pooler does not affect a token's score.
            add_low_rank(backbone, rank, skipped=("pooler", "lora_"))

    def encode(self, texts: Sequence[Text]) -> Encoding:
        """The texts' tokens, truncated to the backbone's limit."""
        return self.encoder.encode(texts, "token", truncate=True)

    def forward(self, encoding: Encoding, wanted: Float[Tensor, "batch classes"]) -> Float[Tensor, "batch tokens"]:
        """The first of `values`, mapped to between 0 and 1 by a sigmoid. One pass per text."""
        return self.values(encoding, wanted)[..., 0].sigmoid()

    def values(
        self, encoding: Encoding, wanted: Float[Tensor, "batch classes"]
    ) -> Float[Tensor, "batch tokens outputs"]:
        """The head's outputs at each position; those of special tokens and padding are meaningless. One pass."""
        lengths = encoding.attention_mask.sum(1)
        device = self.prediction.device
        ids = self._with_place(encoding.input_ids, encoding.input_ids[:, 0], lengths).to(device)
        # Not registered as a submodule: its weights would appear twice in the state.
        table = self.backbone.get_input_embeddings()
        embeds = table(ids)
        encoded = self.prediction + wanted.to(self.labels) @ self.labels
        place = nn.functional.one_hot(lengths, ids.shape[1]).to(device, torch.bool)[..., None]
        embeds = torch.where(place, encoded.to(embeds)[:, None], embeds)
        with given_embeddings([table], embeds, family_of(self.backbone).tokens_first):
            states = self.backbone(**self._inputs(encoding, ids, lengths))[0]
        states = self.dropout(states[:, : encoding.input_ids.shape[1]].float())
        values: Tensor = self.output(torch.tanh(self.hidden(states)))
        return values

    def tuned(self) -> dict[str, Tensor]:
        """The parameters fine-tuned on a text: all trainable ones except the prediction's embeddings."""
        return {name: p for name, p in self.named_parameters() if p.requires_grad and name not in FIXED}

    def quiet(self) -> AbstractContextManager[None]:
        """Disables dropout inside the context."""
        return evaluating(self)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Exclusive access for one thread: the modules hold other parameters inside the context.

        Other threads wait on entry.
        """
        with _ALONE.setdefault(self, Lock()):
            yield

    def with_parameters(
        self, parameters: Mapping[str, Tensor], encoding: Encoding, wanted: Float[Tensor, "batch classes"]
    ) -> Float[Tensor, "batch tokens"]:
        """`forward` with other parameters, such as those of each text stacked along a first axis.

        If threads share the attribution model, every pass must be inside `alone`.
        """
        output: Tensor = torch.func.functional_call(self, dict(parameters), (encoding, wanted))
        return output

    def _inputs(self, encoding: Encoding, ids: Tensor, lengths: Tensor) -> dict[str, Tensor | None]:
        mask = torch.arange(ids.shape[1])[None, :] <= lengths[:, None]
        inputs: dict[str, Tensor | None] = {
            "input_ids": ids,
            "attention_mask": None if bool(mask.all()) else mask.long().to(ids.device),
        }
        if self._takes_types:
            last = encoding.type_ids.gather(1, lengths[:, None] - 1)[:, 0]
            inputs["token_type_ids"] = self._with_place(encoding.type_ids, last, lengths).to(ids.device)
        if self._offset:
            # Such a model counts positions over the ids that are not padding.
            positions = torch.arange(self._offset, self._offset + ids.shape[1], device=ids.device)
            inputs["position_ids"] = positions.expand(ids.shape)
        return inputs

    @staticmethod
    def _with_place(table: Tensor, filler: Tensor, lengths: Tensor) -> Tensor:
        """One more column, and `filler` after each row's last token: the place of the prediction."""
        wider = nn.functional.pad(table, (0, 1))
        return wider.scatter(1, lengths[:, None], filler[:, None])


_ALONE: WeakKeyDictionary[Attributor, Lock] = WeakKeyDictionary()
"""Kept outside the modules, because modules are copied and saved with all their attributes."""


def encoder_copy(model: PreTrainedModel, *, shared: bool) -> PreTrainedModel:
    """A copy of a model's encoder; with `shared`, separate modules over the model's own memory.

    Raises UnsupportedError for a model that reads from left to right: its first tokens could not see the prediction.
    """
    part: PreTrainedModel = (
        model.get_encoder() if model.config.is_encoder_decoder else model.base_model  # type: ignore[assignment]
    )
    _check_both_ways(part)
    keep: dict[int, object] = {}
    if shared and next(part.parameters()).dtype == torch.float32:
        keep = {id(tensor): tensor for tensor in (*part.parameters(), *part.buffers())}
    for config in configs_of(part):
        keep[id(config)] = untapped_copy(config)
    with held_still():
        copied = copy.deepcopy(part, keep).float().eval()
    _without_hooks(copied)
    if keep:
        # Freezing the copy must not freeze the model: new parameters over the same memory.
        _own_parameters(copied)
    return copied.requires_grad_(True)


def _without_hooks(module: nn.Module) -> None:
    """Remove the caller's hooks: they are meant for the model's own passes."""
    for part in module.modules():
        for hooks in (part._forward_hooks, part._forward_pre_hooks, part._backward_hooks, part._backward_pre_hooks):
            hooks.clear()


def _own_parameters(module: nn.Module) -> None:
    for part in module.modules():
        for name, parameter in part._parameters.items():
            if parameter is not None:
                part._parameters[name] = nn.Parameter(parameter.detach())


def _check_both_ways(part: PreTrainedModel) -> None:
    ids = torch.tensor([[3, 4, 5], [3, 4, 6]], device=part.device)
    with torch.no_grad(), evaluating(part):
        first, second = part(input_ids=ids)[0][:, 0]
    if torch.equal(first, second):
        raise UnsupportedError(
            f"{type(part).__name__} cannot be an attribution model",
            [
                "it reads from left to right, so a token's score could depend neither on later tokens nor on the "
                "prediction"
            ],
            "Give an encoder as the backbone (--backbone minilm).",
        )


def _hidden_size(backbone: PreTrainedModel) -> int:
    size: int = backbone.config.hidden_size
    return size
