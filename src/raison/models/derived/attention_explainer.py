"""Explainers built from a model's attention and trained with it: IvRA's module, and SMaT's mix of heads."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import torch
from jaxtyping import Float
from torch import Tensor, nn

from raison.core.capabilities.attention import ReadableAttention, TapRecord
from raison.core.capabilities.passes import Passes
from raison.core.dims import Attention, HeadStates
from raison.core.errors import UnknownNameError
from raison.core.inputs.encoding import Encoding
from raison.core.model import LanguageModel
from raison.numerics.attention.interpretable import (
    Coefficients,
    Normalization,
    TokenMasks,
    check_norm,
    interpretable_attention,
    mixed_heads,
    normalised,
)

ExplainerForm = Literal["ivra", "smat"]
FORMS: tuple[ExplainerForm, ...] = get_args(ExplainerForm)
SelectionLevel = Literal["feature", "head", "layer"]
SELECTIONS: tuple[SelectionLevel, ...] = get_args(SelectionLevel)
Over = Literal["units", "tokens"]
OVERS: tuple[Over, ...] = get_args(Over)


@dataclass(frozen=True, slots=True)
class Design:
    """The design of an explainer: its form and its normalisation; `selection` names the coefficients that are trained.

    `over` "units" spreads the explanation over the tokens of the text. "tokens" spreads it over all tokens except
    padding, special tokens included, as in IvRA's equations. `initial` are the initial head and layer coefficients,
    None those of InterpretableAttention.
    """

    form: str = "ivra"
    norm: str = "softmax"
    selection: tuple[str, ...] = SELECTIONS
    over: str = "units"
    initial: tuple[float, float] | None = None

    def check(self) -> None:
        """Raises UnknownNameError, or LoadError where sparsemax is not installed."""
        if self.form not in FORMS:
            raise UnknownNameError("form of explainer", self.form, FORMS)
        check_norm(self.norm)
        if self.form == "smat":
            # Heads are mixed by sparsemax, regardless of the norm over tokens.
            check_norm("sparsemax")
        for name in self.selection:
            if name not in SELECTIONS:
                raise UnknownNameError("selection", name, SELECTIONS)
        if self.over not in OVERS:
            raise UnknownNameError("value of over", self.over, OVERS)


@dataclass(frozen=True, slots=True)
class HeadShape:
    """The shape of a model's attention: layers, heads per layer, and features per head."""

    layers: int
    heads: int
    features: int

    @classmethod
    def of(cls, model: LanguageModel, encoding: Encoding) -> "HeadShape":
        """Found in one pass of a text. Raises UnsupportedError if the attention cannot be tapped."""
        with torch.no_grad(), model.ask(ReadableAttention).tap(record=("query",)) as tap:
            model.ask(Passes).logits(encoding.select([0]))
        _, heads, _, features = tap.query[0].shape
        return cls(len(tap.query), heads, features)


@dataclass(frozen=True, slots=True)
class Multiples:
    """Coefficients as multiples of their initial values, rounded: what a training changed.

    `heads` has a list of heads for each layer, `layers` a number for each, and `features` the mean over a head's
    features of queries and keys. The last two are empty if they have no coefficients.
    """

    heads: list[list[float]]
    layers: list[float] = field(default_factory=list)
    features: list[list[float]] = field(default_factory=list)


class InterpretableAttention(nn.Module):
    """IvRA's interpretable attention module (Xie et al. 2024, 2.1); see raison.numerics.attention.interpretable.

    omega_Q and omega_K start at 1; the paper gives no starting values. With sparsemax, lambda and eta also start at 1:
    about a third of a sentence's tokens are then above zero, and a token at zero gets no gradient. A softmax from there
    would be uniform to three digits, and its gradients would be negligible compared with those of the task. With
    softmax, lambda therefore starts at the number of features, which brings the products of two distributions to about
    1, and eta at LAYER_START, which does the same for shares of a sentence's tokens. Both are stored as start x weight
    with weights that start at 1, so that one learning rate suits all coefficients. Coefficients that are not selected
    keep their start.
    """

    steps = ("query", "key")
    LAYER_START = 32.0

    def __init__(self, shape: HeadShape, design: Design) -> None:
        super().__init__()
        usual = (float(shape.features), self.LAYER_START) if design.norm == "softmax" else (1.0, 1.0)
        self.starts = design.initial or usual
        per_head = (shape.layers, shape.heads, shape.features)
        # `Design.check` refuses other names.
        self.norm: Normalization = design.norm  # type: ignore[assignment]
        chosen = design.selection
        self.query = nn.Parameter(torch.ones(per_head), requires_grad="feature" in chosen)
        self.key = nn.Parameter(torch.ones(per_head), requires_grad="feature" in chosen)
        self.heads = nn.Parameter(torch.ones(per_head[:2]), requires_grad="head" in chosen)
        self.layers = nn.Parameter(torch.ones(per_head[:1]), requires_grad="layer" in chosen)

    def forward(self, records: Sequence[Sequence[HeadStates]], places: TokenMasks) -> Float[Tensor, "batch tokens"]:
        return interpretable_attention(records[0], records[1], self.coefficients, places, self.norm)

    @property
    def coefficients(self) -> Coefficients:
        """omega_Q, omega_K, lambda and eta."""
        heads, layers = self.starts
        return Coefficients(self.query, self.key, heads * self.heads, layers * self.layers)

    def multiples(self) -> Multiples:
        """See Multiples."""
        features = torch.cat([self.query, self.key], -1).mean(-1)
        return Multiples(_listed(self.heads), _listed(self.layers), _listed(features))


class HeadMixture(nn.Module):
    """SMaT's explainer (Fernandes et al. 2022), which weighs only heads.

    r = NORM over tokens of sum_h sparsemax(lambda)_h s_h, where s are the attention scores before their softmax,
    averaged over the attending tokens, and lambda starts at 1 / (layers x heads). NORM is softmax in the published
    code.
    """

    steps = ("scores",)

    def __init__(self, shape: HeadShape, design: Design) -> None:
        super().__init__()
        count = shape.layers * shape.heads
        # `Design.check` refuses other names.
        self.norm: Normalization = design.norm  # type: ignore[assignment]
        self.shape = shape
        self.heads = nn.Parameter(torch.full((count,), 1 / count))

    def forward(self, records: Sequence[Sequence[Attention]], places: TokenMasks) -> Float[Tensor, "batch tokens"]:
        mixed = mixed_heads(records[0], normalised(self.heads, "sparsemax"), places)
        return normalised(mixed, self.norm, places.explained)

    def multiples(self) -> Multiples:
        """See Multiples. A head's coefficient is its share after sparsemax."""
        shares = normalised(self.heads.detach(), "sparsemax").view(self.shape.layers, self.shape.heads)
        return Multiples(_listed(len(self.heads) * shares))


def _listed(weights: Tensor) -> list[Any]:
    return (weights.detach().double() * 1e4).round().div(1e4).tolist()


def new_explainer(shape: HeadShape, design: Design) -> InterpretableAttention | HeadMixture:
    """An untrained explainer. Raises what `Design.check` raises."""
    design.check()
    return InterpretableAttention(shape, design) if design.form == "ivra" else HeadMixture(shape, design)


def places_of(encoding: Encoding, over: str, device: torch.device) -> TokenMasks:
    """Every token of a text attends; padding never does."""
    mask = encoding.attention_mask.to(device)
    return TokenMasks(mask, encoding.scored.to(device) if over == "units" else mask)


def read_map(
    explainer: InterpretableAttention | HeadMixture, tap: TapRecord, places: TokenMasks
) -> Float[Tensor, "batch tokens"]:
    """The explanation computed from the latest pass that the tap recorded."""
    steps = {"query": tap.query, "key": tap.key, "scores": tap.scores}
    records = [[steps[step][layer] for layer in sorted(steps[step])] for step in explainer.steps]
    return explainer(records, places)
