"""Explain texts, or outputs of a language model: the entry point to attribution, selection and generation."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Literal, TypedDict, Unpack, cast, overload

from raison.core.errors import InputError, UnsupportedError
from raison.core.inputs.chat import Chat, Message
from raison.core.inputs.parts import Given, PartedText, Spans, plain
from raison.core.inputs.unit import Granularity, Side, blank
from raison.core.internals.precision import Precision
from raison.core.method import Method
from raison.core.metric import Metric, Need
from raison.core.model import LanguageModel
from raison.core.note_names import AMONG
from raison.core.registry import name_of
from raison.core.results import number_rank
from raison.core.results.explanation import Explanation
from raison.core.results.generation import GenerationExplanation
from raison.core.results.number_rank import NumberRank
from raison.core.targets.choices import EACH, for_each_text, plain_number
from raison.core.targets.ranking import Ranked
from raison.core.targets.target import TargetSpec, check_numbers, check_targets
from raison.explaining.attribution import check, run, run_candidates
from raison.explaining.batch import BATCH, Batch, check_model, prepare, prepare_stated
from raison.explaining.each_prediction import batch_of_each, threshold_of, without_threshold
from raison.explaining.generation import OutputContrast, Writing, explain_generation, for_each, writings
from raison.explaining.given_texts import InputOptions, PromptInput, Texts
from raison.explaining.measuring import create_metrics, lacking_of, missing_needs
from raison.explaining.ranking import Ranking, at_hand, fitting, named, pairs_of, read_ranked
from raison.explaining.selection import best_maps, check_selection
from raison.explaining.settings import Settings
from raison.methods import CATALOGUE
from raison.models.adapters.writing.writer import Writer
from raison.models.tokens.token_rows import name_of as name_of_text
from raison.models.tokens.token_rows import numbered_among
from raison.progress import Advance, progress_bar

_Result = (
    Explanation | GenerationExplanation | list[Explanation] | list[list[Explanation]] | list[GenerationExplanation]
)

OneInput = str | tuple[str, str] | PartedText | Ranking
"""One text; a tuple of three strings counts as three texts."""

Inputs = OneInput | Sequence[Ranking] | Chat | Texts | Iterable[Message] | Iterable[Sequence[Message]] | Iterable[Chat]
"""A text, a prompt or a chat, or several texts, prompts or chats."""


@dataclass(frozen=True, slots=True)
class _ExplainOptions:
    """How texts are to be explained."""

    method: Method
    chooser: Metric | None
    """The metric that selects one of the method's maps; None if the method has only one."""
    settings: Settings
    progress: bool | Advance
    threshold: float | None

    def of(self, unit: Granularity) -> "_ExplainOptions":
        """The same for another unit."""
        return replace(self, settings=replace(self.settings, unit=unit))


class EachOptions(TypedDict, total=False):
    """The settings of `explain` with target="each" by name, for type checkers."""

    unit: Granularity | None
    units: Spans | Sequence[Spans] | Side | None
    text: str | list[str] | None
    language: str | None
    of: str | None
    removal: str | None
    seed: int
    truncate: bool
    precision: Precision
    select: str | Metric | None
    budget: int | None
    progress: bool | Advance
    threshold: float | None


class Options(EachOptions, total=False):
    """All settings of `explain` by name, for type checkers."""

    target: TargetSpec
    output: str | Iterable[str] | None
    max_new_tokens: int | None
    contrast: OutputContrast
    earlier: bool


# A string is itself a sequence of strings: the first signature that fits counts.
@overload
def explain(  # type: ignore[overload-overlap]
    model: LanguageModel,
    texts: OneInput,
    method: str | Method = ...,
    *,
    target: Literal["each"],
    **options: Unpack[EachOptions],
) -> list[Explanation]: ...
@overload
def explain(  # type: ignore[overload-overlap]
    model: LanguageModel,
    texts: Texts,
    method: str | Method = ...,
    *,
    target: Literal["each"],
    **options: Unpack[EachOptions],
) -> list[list[Explanation]]: ...
@overload
def explain(  # type: ignore[overload-overlap]
    model: LanguageModel, texts: OneInput, method: str | Method = ..., **options: Unpack[Options]
) -> Explanation: ...
@overload
def explain(
    model: LanguageModel, texts: Texts | Sequence[Ranking], method: str | Method = ..., **options: Unpack[Options]
) -> list[Explanation]: ...
@overload
def explain(  # type: ignore[overload-overlap]
    model: Writer,
    texts: str | PartedText | Chat | Sequence[Message],
    method: str | Method = ...,
    **options: Unpack[Options],
) -> GenerationExplanation: ...
@overload
def explain(
    model: Writer,
    texts: Iterable[str] | Iterable[PartedText] | Iterable[Chat] | Iterable[Sequence[Message]],
    method: str | Method = ...,
    **options: Unpack[Options],
) -> list[GenerationExplanation]: ...
def explain(
    model: LanguageModel | Writer,
    texts: Inputs,
    method: str | Method = "auto",
    *,
    unit: Granularity | None = None,
    units: Spans | Sequence[Spans] | Side | None = None,
    text: str | list[str] | None = None,
    language: str | None = None,
    target: TargetSpec = None,
    of: str | None = None,
    removal: str | None = None,
    seed: int = 0,
    truncate: bool = False,
    precision: Precision = "float32",
    select: str | Metric | None = None,
    budget: int | None = None,
    progress: bool | Advance = True,
    output: str | Iterable[str] | None = None,
    max_new_tokens: int | None = None,
    contrast: OutputContrast = None,
    earlier: bool = False,
    threshold: float | None = None,
) -> _Result:
    """Explain the prediction on a text, or on each of several; of a generative model, each output token and the whole.

    Args:
        model: from `raison.load`.
        texts: a string, a pair (tuple of two), a ranking (query, [document, ...]); any sequence of these gives a list.
            For a language model, prompts, or chats: lists of dicts with "role" and "content".
        method: a name ("kernel_shap"), a call ("kernel_shap(samples=512)") or an instance (methods.KernelShap()).
            "auto" chooses one for each text, within `budget` passes (100), and notes the reason.
        unit: "token", "word", "sentence", or "part": parts of a text, messages of a chat. None: parts if any, or words.
        units: in place of `unit`, spans [(start, end), ...] or {"title": (start, end), ...}; in a list, one entry per
            text. The rest is context, never removed. For a pair also "first" or "second": only that text's words.
        text: the column of texts in rows, or [first, second] for pairs. language: that of the sentences, such as "de".
        target: None for the predicted class, a label's name or index, a pair (this, not that) of these, or a list of
            them. For answers, None or a part of the context; for entities, masks see docs/models.md. "each" gives a
            list per text: labels from `threshold` (0.5) on, entities, masks. For a ranking, two documents (0, 1).
        of: "probability" (None), "logit", "log_odds", "margin", "log_probability"; a model's one number is its "logit".
        removal: what replaces an absent unit: "mask", "ellipsis", "unk", "pad" or "delete"; None: the model's default.
        seed: the seed of random methods. A text's draws depend only on the seed, the method and the text.
        truncate: explain the beginning of a text that is too long (its end if the tokenizer cuts on the left).
        precision: "bfloat16" evaluates perturbed texts with 16-bit weights; the notes report how well this agrees.
        select: a metric that chooses each text's map among those of the method; `evaluations` include its cost.
        progress: a progress bar on stderr for long lists, or a function called with the number of finished texts.
        output: the output to explain, exactly as it follows the prompt, leading space included; None: the model's own,
            with at most `max_new_tokens` (20). For several prompts also a list or column of outputs.
        contrast: why not this: a word (its first token) or a token's id for every output token, or a list of these.
        earlier: also score the output tokens before each output token.

    Raises InputError, LoadError, UnsupportedError, NonFiniteError, OutOfMemoryError, AnswerError, ServerError,
    SpentError, or kinds of these.
    """
    chosen = within_budget(method, budget)
    settings = Settings("word", target, of, removal, seed, truncate, precision)
    how = _ExplainOptions(chosen, _chooser(model, chosen, select), settings, progress, threshold)
    writing = writings(output, max_new_tokens, contrast, earlier)
    return _explain(model, texts, InputOptions(unit, units, text, language), how, writing)


def within_budget(method: str | Method, budget: int | None) -> Method:
    """The method, or auto with a budget. InputError for other methods with one, which have their own settings."""
    if budget is None:
        return CATALOGUE.create(method)
    if method != "auto":
        raise InputError(
            "budget= is for method='auto'; other methods set their number of passes themselves, such as "
            "kernel_shap(samples=100)."
        )
    return CATALOGUE.create(f"auto(budget={plain_number(budget)!r})")


def _explain(
    model: LanguageModel | Writer,
    texts: Inputs,
    reading: InputOptions,
    how: _ExplainOptions,
    writing: Writing | list[Writing],
) -> _Result:
    if isinstance(model, Writer):
        without_threshold(how.threshold)
        prompts = reading.prompts(texts)
        each = for_each(writing, len(prompts.texts), prompts.single)
        written = _explain_writing(model, prompts.texts, how.of(prompts.unit), each)
        return written[0] if prompts.single else written
    check_unwritten(next(iter(writing), Writing("")) if isinstance(writing, list) else writing)
    texts = at_hand(texts)
    ranked = read_ranked(texts)
    if ranked is not None:
        without_threshold(how.threshold)
        return _explain_rankings(model, *ranked, reading, how)
    given = reading.any(texts)
    check_model(model)
    # Called in any case, because it refuses what does not fit.
    threshold = threshold_of(model, how.settings.target, how.threshold)
    if how.settings.target == EACH:
        several = _explain_each(model, given.texts, how.of(given.unit), threshold)
        return several[0] if given.single else several
    explanations = _explain_all(fitting(model, given.texts), given.texts, how.of(given.unit))
    return explanations[0] if given.single else explanations


def _explain_rankings(
    model: LanguageModel, ranked: Sequence[Ranked], single: bool, reading: InputOptions, how: _ExplainOptions
) -> Explanation | list[Explanation]:
    """Each ranking's two documents."""
    check_model(model)
    chosen = pairs_of(model, ranked, how.settings.target, how.settings.truncate)
    texts = [one.pair(*documents) for one, (documents, _) in zip(ranked, chosen, strict=True)]
    given, unit = reading.several(texts, single)
    settings = replace(how.settings, unit=unit, target=None)
    explanations = _explain_all(model.ranker, given, replace(how, settings=settings))
    explained = [named(e, *pair, scores) for e, (pair, scores) in zip(explanations, chosen, strict=True)]
    return explained[0] if single else explained


def check_unwritten(writing: Writing, chat: bool = False) -> None:
    """Raise InputError for arguments that only apply to generative language models."""
    given = [*writing.given, *(["chat"] if chat else [])]
    if given:
        verb = "applies" if len(given) == 1 else "apply"
        raise InputError(
            f"{', '.join(given)} {verb} to generative language models, and this model is a classifier: load a causal "
            "language model without a prompt (raison.load(name)), or leave it out."
        )


def _chooser(model: LanguageModel | Writer, method: Method, select: str | Metric | None) -> Metric | None:
    """The metric that chooses. InputError or UnsupportedError if there is no choice, or it cannot be made."""
    if select is None:
        return None
    if isinstance(model, Writer):
        raise InputError(
            "select= applies to classifiers, and this model is generative: load it with a prompt that makes it a "
            "classifier (raison.load(name, prompt=...)), or leave select out."
        )
    check_model(model)
    [metric] = create_metrics([select])
    check_selection([metric], [method])
    why = lacking_of(model.outputs)
    lacking = missing_needs([metric], frozenset(Need) - {Need.RATIONALES, *why}, why)
    if lacking:
        raise UnsupportedError(
            "explain cannot select a map by this metric", lacking, "compare(..., select=..., rationales=...) can."
        )
    # A group metric was refused above.
    return metric  # type: ignore[return-value]


def _explained(batch: Batch, how: _ExplainOptions) -> list[Explanation]:
    """The method's explanations of a batch, or the best of its maps."""
    if how.chooser is None:
        return run(batch, how.method)
    return best_maps(batch, [run_candidates(batch, how.method)], [how.chooser])[0][0]


def _prepared(model: LanguageModel, texts: Sequence[Given], settings: Settings, chooser: Metric | None) -> Batch:
    """A metric that chooses also measures, and only the model's own answers are measured."""
    return prepare(model, texts, settings) if chooser is not None else prepare_stated(model, texts, settings)


def _settings_of(settings: Settings, rows: Sequence[int], count: int) -> Settings:
    """The settings for some of `count` texts: a list of targets follows its texts. Raises InputError."""
    for_each_text(settings.target, count)
    return settings.of_texts(rows)


def _batches(texts: Sequence[Given]) -> list[list[int]]:
    """Texts of similar length are batched together, so that batches need little padding.

    The longest come first: one that is too long is refused before others are explained.
    """
    order = sorted(range(len(texts)), key=lambda i: -len(str(plain(texts[i]))))
    return [order[start : start + BATCH] for start in range(0, len(order), BATCH)]


def _check_all(model: LanguageModel, texts: Sequence[Given], settings: Settings) -> None:
    """Refuse what can be found without a pass: blank texts, and a list of targets that names an unknown class."""
    for number, text in enumerate(texts):
        if (reason := blank(name_of_text(number, len(texts)), plain(text))) is not None:
            raise InputError(reason)
    if model.choosing is None:
        check_numbers(settings.target, model.classes)
    if not isinstance(settings.target, list):
        return
    _settings_of(settings, (), len(texts))
    # Entities, masked words and answers are found in their texts.
    with numbered_among([0], len(texts)):
        encode = model.encode if model.choosing is None else model.tokenized
        first = encode(texts[:1], settings.unit, truncate=True)
    if model.choosing is None and first.spans is None:
        check_targets(settings.target, model.classes)


def _explain_each(
    model: LanguageModel, texts: Sequence[Given], how: _ExplainOptions, threshold: float
) -> list[list[Explanation]]:
    """Every prediction in every text from the threshold on."""
    check(model, how.method)
    _check_all(model, texts, how.settings)
    explanations: list[list[Explanation]] = [[] for _ in texts]
    with progress_bar(name_of(how.method), len(texts), how.progress) as advance:
        for rows in _batches(texts):
            with numbered_among(rows, len(texts)):
                batch, owners = batch_of_each(model, [texts[i] for i in rows], how.settings, threshold)
            explained = [] if batch is None else _explained(batch, how)
            for owner, e in zip(owners, explained, strict=True):
                explanations[rows[owner]].append(e)
            advance(len(rows))
    return explanations


def _explain_all(model: LanguageModel, texts: Sequence[Given], how: _ExplainOptions) -> list[Explanation]:
    # What cannot be done is refused before a text is predicted.
    check(model, how.method)
    _check_all(model, texts, how.settings)
    explanations: dict[int, Explanation] = {}
    with progress_bar(name_of(how.method), len(texts), how.progress) as advance:
        for rows in _batches(texts):
            settings = _settings_of(how.settings, rows, len(texts))
            with numbered_among(rows, len(texts)):
                batch = _prepared(model, [texts[i] for i in rows], settings, how.chooser)
            explanations.update(zip(rows, _explained(batch, how), strict=True))
            advance(len(rows))
    in_order = [explanations[i] for i in range(len(texts))]
    return _placed(in_order) if model.outputs == "number" and model.strings < 3 else in_order


def _placed(explanations: list[Explanation]) -> list[Explanation]:
    """With a note of the rank of each text's number among those of all texts of the call, if there are enough."""
    values = [e.value_full for e in explanations]
    if len(values) < number_rank.FEWEST:
        return explanations
    return [
        replace(e, notes=e.notes | {AMONG: asdict(NumberRank.of(value, values))})
        for e, value in zip(explanations, values, strict=True)
    ]


def _explain_writing(
    model: Writer, prompts: Sequence[PromptInput], how: _ExplainOptions, writings: Sequence[Writing]
) -> list[GenerationExplanation]:
    """One prompt or chat at a time: its output tokens fill the batches."""
    explanations = []
    with progress_bar(name_of(how.method), len(prompts), how.progress) as advance:
        for each, writing in zip(prompts, writings, strict=True):
            prompt = cast("str | PartedText | Chat", each)
            explanations.append(explain_generation(model, prompt, how.method, how.settings, writing))
            advance(1)
    return explanations
