"""Scores of one method's explanations: a value per text (or group) and metric, then means with intervals."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import cache, partial
from typing import Any

import numpy as np

from raison.core.capabilities.embeddings import WordEmbeddings
from raison.core.capabilities.hidden_states import HiddenStates
from raison.core.errors import InputError, RaisonError, UnsupportedError
from raison.core.inputs.encoding import Encoding
from raison.core.inputs.parts import again
from raison.core.inputs.unit import Unit
from raison.core.inputs.unknown_tokens import caution_of_texts, share_in
from raison.core.metric import IN_PLACE, GroupMetric, Metric, Need
from raison.core.model import LanguageModel
from raison.core.note_names import AUTO
from raison.core.registry import label_of
from raison.core.results.citations import Citations
from raison.core.results.explanation import Explanation
from raison.core.results.generation import GenerationExplanation
from raison.core.results.scores import Scores
from raison.core.targets.choices import SingleTarget
from raison.data.spans import given_rationales
from raison.explaining.batch import BATCH, Batch, prepare, refuse_stated
from raison.explaining.bounds import blank_explanation
from raison.explaining.evidence import TextsEvidence, check_recreated, is_selected
from raison.explaining.measuring import (
    Annotations,
    AnyMetric,
    Metrics,
    create_metrics,
    lacking_of,
    measure,
    missing_needs,
)
from raison.explaining.ranking import fitting, unnamed
from raison.explaining.returned_values import announced, checked_values
from raison.explaining.settings import Settings
from raison.judging.another_model import caution_of_changed, check_outputs, count_changed
from raison.judging.statements import BY_SENTENCES, SUMMED, statements_of
from raison.metrics import CATALOGUE
from raison.models.adapters.writing.writer import Writer
from raison.progress import Advance, progress_bar
from raison.runs.summary import Costs, MetricInfo, Value, method_scores, metric_scores

Written = Citations | GenerationExplanation
KeptOfGroups = dict[int, dict[str, np.ndarray]]
"""What a group metric made of the texts alone, by the number of a group's first text."""
ExplainedTexts = Explanation | Iterable[Explanation] | Iterable[Iterable[Explanation]] | Written | Iterable[Written]

DEFAULT_METRICS = (
    "comprehensiveness",
    "sufficiency",
    "aopc_comprehensiveness",
    "aopc_sufficiency",
    "log_odds",
)
_UNMET = {SUMMED: Need.VALUES, BY_SENTENCES: Need.METHOD}
"""Needs that explanations with these notes do not meet: sums over tokens, and scores made from those of sentences."""

_ANY_UNITS = (Unit(0, 3, "any"), Unit(4, 8, "text"))


def evaluate(
    model: LanguageModel | Writer,
    explanations: ExplainedTexts,
    metrics: Metrics | None = None,
    *,
    rationales: Annotations | None = None,
    progress: bool | Advance = True,
) -> Scores:
    """Evaluate the explanations of one method.

    Args:
        model: the model that was explained.
        explanations: one, or any sequence of them, by one method with one setting or all by auto, with the same unit;
            also the lists of target="each". For a generative model: Citations, whose statements are evaluated by their
            sources, or GenerationExplanations, evaluated by the log-probability of the whole output.
        metrics: names, calls such as "comprehensiveness(share=0.1)" or instances; None: DEFAULT_METRICS that apply.
        rationales: what people marked in each explained text, one rationale (spans of characters) per annotator, for
            the metrics that need them; in the form of a Dataset's `rationales`. With lists of target="each", one entry
            for each text, or for each explanation.
        progress: a progress bar on stderr, or a function called with the number of finished texts.

    Returns:
        Each metric's values, mean and 95 % bootstrap interval over texts, of which one may have several explanations,
        and the cost of the explanations; the same for each label alone in `by_target`, where a multi-label model's
        explanations are of several labels.

    Raises:
        InputError: explanations of several methods or units, or with units that the model's tokenizer does not find.
        UnsupportedError: metrics that need what the model or the data lacks.
    """
    model, given = _given(model, explanations)
    chosen = create_metrics(default_metrics(model) if metrics is None else metrics)
    label = _one_method(given)
    _check(model, chosen, given, has_rationales=rationales is not None)
    marks = (
        ((),) * len(given)
        if rationales is None
        else given_rationales(_for_each([*rationales], explanations), [e.text for e in given])
    )
    of_texts = [metric for metric in chosen if isinstance(metric, Metric)]
    rows: list[list[Value]] = []
    changed = 0
    with progress_bar("metrics", len(given), progress) as advance:
        for start in range(0, len(given), BATCH):
            part = slice(start, start + BATCH)
            batch = _batch_of(model, given[part])
            changed += count_changed(batch, given[part])
            rows += measure(batch, given[part], of_texts, marks[part])
            advance(len(given[part]))
    columns: dict[AnyMetric, list[Value]] = {metric: [row[i] for row in rows] for i, metric in enumerate(of_texts)}
    for metric in chosen:
        if isinstance(metric, GroupMetric):
            columns[metric] = [value for values in measure_groups(model, given, metric, {}) for value in values]
    whole = _scores_of(label, {info_of(metric): columns[metric] for metric in chosen}, given)
    whole = replace(whole, cautions=(*whole.cautions, *caution_of_changed(changed, len(given), model.name)))
    targets = dict.fromkeys(e.target for e in given)
    if (model.outputs != "labels" and model.choosing is None) or len(targets) < 2:
        return whole
    return replace(whole, by_target={name: _of_target(name, label, columns, given) for name in targets})


def evaluate_maps(model: LanguageModel, maps: Sequence[Explanation], metric: Metric) -> list[Value]:
    """A metric of several maps of one text, which the model reads whole only once. Raises as `evaluate` does."""
    model, given = _given(model, maps)
    _check(model, [metric], given, has_rationales=False)
    return [value for [value] in measure(_batch_of(model, given[:1]), given, [metric])]


def _check(
    model: LanguageModel, metrics: Sequence[AnyMetric], given: Sequence[Explanation], *, has_rationales: bool
) -> None:
    """Raise UnsupportedError unless the metrics can be measured on these explanations."""
    check_metrics(
        model,
        metrics,
        has_rationales=has_rationales,
        texts=len(given),
        unmet=frozenset(need for note, need in _UNMET.items() if any(note in e.notes for e in given)),
        repeated=len({repr(e.text) for e in given}) < len({repr((e.text, e.target, e.place)) for e in given}),
    )
    check_recreated((e.method for e in given if not is_selected(e)), metrics)


def _given(model: LanguageModel | Writer, explanations: ExplainedTexts) -> tuple[LanguageModel, list[Explanation]]:
    """The model that predicts what was explained, and the explanations in its terms. Raises InputError."""
    if isinstance(model, Writer):
        return statements_of(model, explanations)
    if not isinstance(model, LanguageModel):
        raise InputError("evaluate needs the model as raison.load returned it.")
    given = _listed(explanations)  # type: ignore[arg-type]
    if not all(isinstance(explanation, Explanation) for explanation in given):
        raise InputError(
            "with a classifier, evaluate needs explanations of its predictions from raison.explain; outputs of a "
            "generative model are evaluated with that model."
        )
    return fitting(model, [e.text for e in given]), list(map(unnamed, given))


def _for_each(rationales: Annotations, explanations: ExplainedTexts) -> Sequence[Any]:
    """The entry of each text for each of its explanations, if texts have lists of them."""
    if not isinstance(explanations, Sequence) or len(explanations) != len(rationales):
        return rationales
    counts = [len(one) if isinstance(one, list | tuple) else 1 for one in explanations]
    return [entry for entry, count in zip(rationales, counts, strict=True) for _ in range(count)]


def _listed(given: Explanation | Iterable[Explanation] | Iterable[Iterable[Explanation]]) -> list[Explanation]:
    """All explanations one after the other; anything else stays as it is."""
    if isinstance(given, Explanation):
        return [given]
    listed: list[Explanation] = []
    for one in given:
        listed += [one] if isinstance(one, Explanation) or not isinstance(one, Iterable) else list(one)
    return listed


def _of_target(
    name: str, label: str, columns: Mapping[AnyMetric, Sequence[Value]], given: Sequence[Explanation]
) -> Scores:
    """The scores of the explanations of one label, by the metrics of single texts."""
    places = [place for place, e in enumerate(given) if e.target == name]
    of_target = {
        info_of(metric): [column[place] for place in places]
        for metric, column in columns.items()
        if isinstance(metric, Metric)
    }
    return _scores_of(label, of_target, [given[place] for place in places])


def _scores_of(label: str, columns: Mapping[MetricInfo, Sequence[Value]], given: Sequence[Explanation]) -> Scores:
    known: dict[str, int] = {}
    numbers = np.array([known.setdefault(repr(e.text), len(known)) for e in given])
    scores = [
        metric_scores(info, [column], numbers=None if info.grouped else numbers) for info, column in columns.items()
    ]
    row = method_scores(label, scores, [costs_of(e) for e in given])
    return replace(row, cautions=caution_of_texts([share_in(e.notes) for e in given]))


def default_metrics(model: LanguageModel) -> list[str]:
    """The metrics of DEFAULT_METRICS that apply to the model's outputs and removals."""
    lacking = {*lacking_of(model.outputs)}
    able = [name for name in DEFAULT_METRICS if not CATALOGUE.get(name).needs & lacking]
    if model.removals == ("delete",):
        able = [name for name in able if _setting_of(CATALOGUE.get(name), IN_PLACE) is None]
    return removing_in_place(model, able)


def removing_in_place(model: LanguageModel, names: Sequence[str]) -> list[str]:
    """Names of metrics that remove units, with what replaces these where the model cannot delete any."""
    if "delete" in model.removals:
        return list(names)
    found = [(name, _setting_of(CATALOGUE.get(name), "delete")) for name in names]
    return [f"{name}({setting}='{model.removals[0]}')" if setting else name for name, setting in found]


def _setting_of(metric: Metric | type[AnyMetric], removal: str) -> str | None:
    """The setting of a metric, or of its class, that has this removal; None if there is none."""
    return next((one.name for one in fields(metric) if getattr(metric, one.name, None) == removal), None)


def check_metrics(
    model: LanguageModel,
    metrics: Sequence[AnyMetric],
    *,
    has_rationales: bool,
    texts: int,
    unmet: frozenset[Need] = frozenset(),
    repeated: bool = False,
) -> None:
    """Raise UnsupportedError, with every reason, unless the model and the data have what the metrics need.

    `unmet` is what the explanations themselves do not have. `repeated` says that some texts are explained for several
    of their predictions.
    """
    given = {
        Need.RATIONALES: has_rationales,
        Need.EMBEDDINGS: model.offers(WordEmbeddings),
        Need.HIDDEN_STATES: model.offers(HiddenStates),
        Need.SEVERAL_TEXTS: texts > 1,
        Need.WHOLE_TEXTS: model.choosing is None,
        Need.METHOD: Need.METHOD not in unmet,
        Need.VALUES: Need.VALUES not in unmet,
    }
    capabilities = {Need.EMBEDDINGS: WordEmbeddings, Need.HIDDEN_STATES: HiddenStates}
    why = {need: model.lacks(kind) for need, kind in capabilities.items() if not given[need]}
    unsaid = lacking_of(model.outputs)
    given |= {need: need not in unsaid for need in (Need.CLASSES, Need.PROBABILITIES)}
    why |= unsaid
    reasons = missing_needs(metrics, frozenset(need for need, there in given.items() if there), why)
    for metric in metrics:
        if isinstance(metric, GroupMetric) and 1 < texts < metric.fewest:
            reasons.append(f"{label_of(metric)} needs at least {metric.fewest} texts; got {texts}")
        if isinstance(metric, GroupMetric) and repeated:
            reasons.append(
                f"{label_of(metric)} is about different texts, and some are explained several times, for different "
                "predictions or statements: explain one in each text"
            )
        if isinstance(metric, Metric):
            reasons += _unremovable(model, metric)
    if reasons:
        raise UnsupportedError(f"cannot measure this on {model.name}", reasons)


def _unremovable(model: LanguageModel, metric: Metric) -> Iterator[str]:
    """Why the model cannot remove units as the metric asks, if so."""
    # A metric may ask for the removal of the explanation, which is one of the model's.
    stand_in = replace(blank_explanation(_ANY_UNITS), removal=model.removals[0])
    for removal in announced(metric, stand_in):
        if removal == IN_PLACE and set(model.removals) == {"delete"}:
            yield f"{label_of(metric)} replaces tokens in place, and the tokenizer has no token for that: leave it out"
        elif removal != IN_PLACE and not _removes(model, removal):
            setting = _setting_of(metric, removal)
            way_out = f"give {setting}='{model.removals[0]}'" if setting else "leave it out"
            yield f"{label_of(metric)} removes by '{removal}', which the model cannot: {way_out}"


def _removes(model: LanguageModel, removal: str) -> bool:
    try:
        model.check_removal(removal)
    except RaisonError:
        return False
    return True


def measure_groups(
    model: LanguageModel, explanations: Sequence[Explanation], metric: GroupMetric, kept: KeptOfGroups
) -> list[tuple[float, ...]]:
    """The values of each group of the explanations of one method.

    Explanations of the same texts by other methods and seeds are evaluated with the same `kept`, empty at first: then
    the model reads the texts once. Raises InputError if the explanations by which a group is first read are those of
    another model, and AnswerError if the metric returns something other than values.
    """
    size = metric.size or len(explanations)
    values = []
    for start in range(0, len(explanations), size):
        group = explanations[start : start + size]
        encode = cache(partial(_encoding_of, model, group))
        if start not in kept:
            encode()
            kept[start] = {}
        returned = metric.measure(group, TextsEvidence(model, encode, kept[start]))
        values.append(checked_values(returned, metric, len(group)))
    return values


def info_of(metric: AnyMetric) -> MetricInfo:
    """The fields of a record that describe a metric."""
    grouped = isinstance(metric, GroupMetric)
    pool = "mean" if isinstance(metric, GroupMetric) else metric.pool
    return MetricInfo(label_of(metric), metric.higher_is_better, pool, grouped)


def costs_of(explanation: Explanation) -> Costs:
    """The cost of an explanation."""
    return Costs(explanation.evaluations, explanation.gradients, explanation.seconds)


def _one_method(explanations: Sequence[Explanation]) -> str:
    if not explanations:
        raise InputError("no explanation to evaluate: pass at least one.")
    chosen = all(AUTO in e.notes for e in explanations)
    # Which removal counts, auto's methods decide.
    kinds = {
        ("auto", "", e.unit, e.of, None) if chosen else (e.method, repr(e.config), e.unit, e.of, e.removal)
        for e in explanations
    }
    if len(kinds) > 1:
        names = ", ".join(sorted({f"{kind[0]} ({', '.join(filter(None, kind[2:]))})" for kind in kinds}))
        raise InputError(
            f"these explanations differ in method, settings, unit, quantity (of) or removal ({names}): evaluate each "
            "kind separately, or use raison.compare."
        )
    return "auto" if chosen else explanations[0].method


def _stated(model: LanguageModel, e: Explanation) -> SingleTarget:
    """The target of an explanation of a prediction at a place of its text."""
    if e.place is None:
        raise InputError(
            f"the explanation of {str(e.text)!r:.60} names no position in the text, so it was not made with "
            f"{model.name}."
        )
    if e.place.tokens:
        token, *against = e.place.tokens
        return e.place.start, e.place.end, (token, against[0]) if against else token
    return e.place.start, e.place.end, e.target if e.against is None else (e.target, e.against)


def _batch_of(model: LanguageModel, explanations: Sequence[Explanation]) -> Batch:
    first = explanations[0]
    stated = None if model.choosing is None else [_stated(model, e) for e in explanations]
    settings = Settings(first.unit, stated, removal=first.removal, truncate=_truncate(explanations))  # type: ignore[arg-type]
    batch = prepare(model, [again(e.text, e.units, e.unit) for e in explanations], settings)
    _check_model(model, explanations, batch.encoding)
    return batch


def _encoding_of(model: LanguageModel, explanations: Sequence[Explanation]) -> Encoding:
    texts = [again(e.text, e.units, e.unit) for e in explanations]
    encoding = model.encode(texts, explanations[0].unit, _truncate(explanations))  # type: ignore[arg-type]
    _check_model(model, explanations, encoding)
    return encoding


def _truncate(explanations: Sequence[Explanation]) -> bool:
    return any(e.truncated for e in explanations)


def _check_model(model: LanguageModel, explanations: Sequence[Explanation], encoding: Encoding) -> None:
    """Raise InputError unless the units and classes of the explanations are those of the model."""
    for explanation, units in zip(explanations, encoding.units, strict=True):
        if explanation.units != units:
            raise InputError(
                f"the units of the explanation of {str(explanation.text)!r:.60} are not the units of {model.name}: "
                f"it was made with another model ({explanation.model}) or version; explain the text again."
            )
        check_outputs(model, explanation)
        # A part of a context may be named like the class of all answers.
        refuse_stated(model, () if explanation.answer is None else (explanation.answer,))
        if model.choosing is None and explanation.target not in model.classes:
            raise InputError(
                f"the explained class is '{explanation.target}', which {model.name} does not have "
                f"({', '.join(model.classes)})."
            )
