"""Does an explanation depend on the model's parameters? Explains the same texts with randomised blocks.

After Adebayo et al. 2018 (cascading and independent randomisation) and section 3.3 of the thesis. A block (attention
and MLP with their norms) is randomised as a whole; embeddings, final norm and head are unchanged.
"""

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, get_args

import numpy as np

from raison.core.errors import InputError, UnsupportedError
from raison.core.inputs.parts import Given, plain
from raison.core.method import Method
from raison.core.model import LanguageModel
from raison.core.registry import label_of, refuse_repeated
from raison.core.settings.fields import Setting
from raison.core.settings.fields import check as check_fields
from raison.core.targets.choices import for_each_text
from raison.explaining.attribution import check, run, scores_of
from raison.explaining.batch import Batch, prepare
from raison.explaining.settings import Settings
from raison.methods import CATALOGUE
from raison.models.adapters.blackbox.function import BlackBox
from raison.models.derived.backbone import backbone_of
from raison.models.derived.randomised import RandomisedModels
from raison.models.stack.blocks import NewValues, check_how, find_blocks, why_fixed
from raison.numerics.measures.agreement import kendall, spearman, top_k_overlap
from raison.numerics.measures.ranking import check_share
from raison.trust.records import CHUNK, BlockSimilarity, Order, SimilarityKey

ORDERS: tuple[Order, ...] = get_args(Order)

ScoreRows = list[np.ndarray]
"""The scores of each text, one per unit."""


@dataclass(frozen=True, slots=True)
class Randomisation:
    """What is randomised, and how it is measured.

    `orders`: "cascading" randomises the last block, the last two, and so on to all; "independent" one block at a time.
    `how`: "initial" draws from the model's own initialisation, "permuted" shuffles each parameter's values. `draws`
    repeats everything with other values. `top` is the share of units, or their number, whose overlap is measured.
    """

    orders: Annotated[
        tuple[Order, ...], Setting(fewest=1, distinct=True, words='"cascading", "independent", or both, each once')
    ] = ORDERS
    how: NewValues = "initial"
    draws: Annotated[int, Setting(least=1)] = 1
    top: Annotated[float | int, Setting(above=0, words="a number of units, or a share of them such as 0.2")] = 0.2
    seed: int = 0

    def __post_init__(self) -> None:
        check_how(self.how)
        check_fields(self)
        if isinstance(self.top, float):
            check_share(self.top)


def similarities(
    model: LanguageModel,
    texts: Sequence[Given],
    methods: Sequence[str | Method],
    settings: Settings,
    plan: Randomisation,
    *,
    done: Container[SimilarityKey] = frozenset(),
    only: range | None = None,
) -> Iterator[list[BlockSimilarity]]:
    """Similarities between the explanations of the model and of its randomised copies, as units of work are finished.

    A unit of work is one method, order, number of blocks and draw over a chunk of 16 texts. `done` holds the keys of
    existing records, which are neither computed nor yielded again. `only` has the numbers of the texts to work on;
    whole chunks give the same records alone as among all texts.

    The explained class (or answer to a question) stays the one that the model itself predicted. A randomised model's
    own prediction is arbitrary, and explanations of different classes would differ for that reason alone. Both
    explanations have the same seeds, and therefore the same masks and draws. Every given method is scored;
    `without_parameters` lists those that should not be. Costs one explanation per record and one per text and method;
    masked evaluations below the lowest randomised block are shared, see RandomisedModels.

    Raises, before anything is explained: InputError without texts or methods; UnsupportedError for a model whose blocks
    cannot be identified, and for methods that it does not allow.
    """
    copies = _DrawnModels(model, plan)
    chosen = _created(methods)
    if not texts or isinstance(texts, str):
        raise InputError("texts must be a list of at least one text.")
    for_each_text(settings.target, len(texts))
    for method in chosen:
        check(model, method)
    wanted = range(len(texts)) if only is None else only
    for start in range(0, len(wanted), CHUNK):
        chunk = _Chunk(copies, texts, settings, wanted[start : start + CHUNK])
        for draw in range(plan.draws):
            for method in chosen:
                yield from chunk.units(method, draw, done)


def count_blocks(model: LanguageModel) -> int:
    """The number of a model's blocks. Raises InputError; UnsupportedError if they cannot be identified."""
    backbone = backbone_of(model)
    if backbone is None:
        raise InputError(
            f"only transformers classifiers and generative models have blocks; got a {type(model).__name__}: load it "
            "with raison.load(...)."
        )
    return len(find_blocks(backbone.core))


def outside(model: LanguageModel) -> str:
    """What a model is of which only the answers are known."""
    return "a function" if isinstance(model, BlackBox) else "behind a server"


def why_no_blocks(model: LanguageModel) -> str:
    """Why no block of a model can be randomised; "" if they can."""
    backbone = backbone_of(model)
    if backbone is None:
        return f"the model is {outside(model)}, whose parameters are unknown"
    try:
        blocks = find_blocks(backbone.core)
    except UnsupportedError as error:
        return "; ".join(error.reasons)
    return next(filter(None, map(why_fixed, blocks)), "")


# The reasons are part of headers, which a resumed study compares: changed wording would refuse to resume it.
def without_parameters(
    model: LanguageModel, texts: Sequence[Given], methods: Sequence[str | Method], settings: Settings
) -> dict[str, str]:
    """The methods for which randomisation is not informative, by their labels, each with the reason in a line.

    These are methods that do not use the model, as their number of passes on the shortest text shows (one explanation
    each), and those with a trained explainer, which belongs to the original model.
    """
    chosen = _created(methods)
    if not texts or isinstance(texts, str):
        raise InputError("texts must be a list of at least one text.")
    shortest = min(range(len(texts)), key=lambda number: len("".join(plain(texts[number]))))
    batch = prepare(model, [texts[shortest]], settings.of_texts([shortest]))
    reasons = {}
    for method in chosen:
        if method.trained:
            reasons[label_of(method)] = (
                "its explainer was trained for the original model and does not fit a changed one"
            )
            continue
        (explanation,) = run(batch, method)
        if explanation.evaluations == explanation.gradients == 0:
            reasons[label_of(method)] = "it does not use the model, so it cannot depend on its parameters"
    return reasons


class _DrawnModels:
    """The randomised models of one draw at a time."""

    def __init__(self, model: LanguageModel, plan: Randomisation) -> None:
        self.model = model
        self.plan = plan
        self.blocks = count_blocks(model)
        self._draw = -1
        self._models: RandomisedModels | None = None

    def of(self, draw: int) -> RandomisedModels:
        if self._models is None or draw != self._draw:
            # Release the old copies before the new ones are made.
            self._models = None
            self._models = RandomisedModels(self.model, self.plan.how, (self.plan.seed, draw))
            self._draw = draw
        return self._models


@dataclass(frozen=True, slots=True)
class _Chunk:
    """Some texts, with the original model's explanations of them by method and texts."""

    copies: _DrawnModels
    texts: Sequence[Given]
    settings: Settings
    numbers: Sequence[int]
    batches: dict[tuple[int, ...], Batch] = field(default_factory=dict)
    originals: dict[tuple[str, tuple[int, ...]], ScoreRows] = field(default_factory=dict)

    def units(self, method: Method, draw: int, done: Container[SimilarityKey]) -> Iterator[list[BlockSimilarity]]:
        """The records of each unit of work of one method and draw that was not done."""
        missing = {
            (blocks, order): [key for key in self._keys(method, order, blocks, draw) if key not in done]
            for blocks in range(1, self.copies.blocks + 1)
            for order in self.copies.plan.orders
        }
        if not any(missing.values()):
            return
        models = self.copies.of(draw)
        # States stored for another method's masks are not needed again.
        models.store.clear()
        # From all blocks down, so that each model can use the states stored below the previous one's randomised blocks.
        for blocks in range(self.copies.blocks, 0, -1):
            scores: dict[tuple[tuple[int, ...], tuple[int, ...]], ScoreRows] = {}
            for order in self.copies.plan.orders:
                keys = missing[blocks, order]
                rows = tuple(key.text for key in keys)
                # Both orders begin with the last block alone.
                randomised = tuple(range(1, blocks + 1)) if order == "cascading" else (blocks,)
                if not rows:
                    continue
                if (randomised, rows) not in scores:
                    scores[randomised, rows] = self._randomised(models, randomised, rows, method)
                yield self._records(keys, method, scores[randomised, rows])
            if "cascading" not in self.copies.plan.orders:
                # One block's copy at a time is enough.
                models.drop_copies()

    def _keys(self, method: Method, order: Order, blocks: int, draw: int) -> list[SimilarityKey]:
        return [SimilarityKey(label_of(method), order, blocks, draw, number) for number in self.numbers]

    def _records(self, keys: Sequence[SimilarityKey], method: Method, scores: ScoreRows) -> list[BlockSimilarity]:
        top = self.copies.plan.top
        originals = self._original(tuple(key.text for key in keys), method)
        return [
            BlockSimilarity(
                method=key.method,
                order=key.order,
                blocks=key.blocks,
                of=self.copies.blocks,
                draw=key.draw,
                text=key.text,
                spearman=spearman(before, after),
                kendall=kendall(before, after),
                overlap=top_k_overlap(before, after, top),
            )
            for key, before, after in zip(keys, originals, scores, strict=True)
        ]

    def _batch(self, rows: tuple[int, ...]) -> Batch:
        if rows not in self.batches:
            texts = [self.texts[row] for row in rows]
            self.batches[rows] = prepare(self.copies.model, texts, self.settings.of_texts(rows))
        return self.batches[rows]

    def _original(self, rows: tuple[int, ...], method: Method) -> ScoreRows:
        key = (label_of(method), rows)
        if key not in self.originals:
            self.originals[key] = scores_of(self._batch(rows), method)
        return self.originals[key]

    def _randomised(
        self, models: RandomisedModels, randomised: tuple[int, ...], rows: tuple[int, ...], method: Method
    ) -> ScoreRows:
        # The target stays; stored evaluations belong to the original model.
        return scores_of(self._batch(rows).on(models.model(randomised)), method)


def _created(methods: Sequence[str | Method]) -> list[Method]:
    if not methods or isinstance(methods, str):
        raise InputError("methods must be a list of at least one name or instance.")
    chosen = [CATALOGUE.create(method) for method in methods]
    refuse_repeated("the method", map(label_of, chosen))
    return chosen
