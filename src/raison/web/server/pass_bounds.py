"""The maximum number of passes of a request, before it runs, and its refusal if the server allows fewer."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from raison.core.errors import InputError
from raison.core.inputs.encoding import Encoding
from raison.core.inputs.parts import Given
from raison.core.method import Method
from raison.core.metric import Metric
from raison.core.model import LanguageModel
from raison.core.targets.choices import EACH
from raison.core.targets.ranking import Ranked
from raison.explaining import bounds
from raison.explaining.bounds import CitationSize, TextSize
from raison.explaining.each_prediction import each_target, threshold_of
from raison.explaining.generation import NEW_TOKENS
from raison.explaining.given_texts import InputOptions
from raison.explaining.ranking import fitting, read_ranked
from raison.explaining.selection import check_selection
from raison.explaining.settings import Settings
from raison.explaining.sources.answer_statements import NEW_TOKENS as ANSWER_TOKENS
from raison.explaining.sources.answer_statements import AnswerRequest, stated_answer
from raison.explaining.sources.citation_settings import CitationSettings
from raison.explaining.sources.rewordings import worded
from raison.explaining.sources.sourced_prompt import SourcedPrompt
from raison.judging.map_checks import REMOVALS
from raison.metrics import CATALOGUE as METRICS
from raison.metrics.harmless_change import HarmlessChange
from raison.models.adapters.writing.writer import Writer
from raison.report.style import phrases
from raison.web.component.writing_request import one_prompt
from raison.web.server.bodies import ExplainBody, given, tupled_spans
from raison.web.server.settings import Limits

COUNTED = 10**12
"""The largest number of passes that a refusal states."""


@dataclass(frozen=True, slots=True)
class Bound:
    """The maximum number of passes of a request, what it is for, and changes of the request that need fewer."""

    passes: int
    what: str
    instead: str

    def check(self, name: str, limits: Limits) -> None:
        """Raise InputError if `name`, a method or the whole request, needs more passes than the limits allow."""
        if self.passes > limits.passes:
            needed = f"up to {self.passes:,}" if self.passes <= COUNTED else f"more than {COUNTED:,}"
            raise InputError(
                f"{name} needs {needed} passes for {self.what}, and this server allows {limits.passes:,}: take "
                f"{self.instead}."
            )


def of_prediction(model: LanguageModel, body: ExplainBody, method: Method) -> Bound:
    """Passes for a text. Raises RaisonErrors for one that the model cannot read.

    With target="each" the model predicts the text, which decides how many predictions are explained.
    """
    return _prediction_bound(_Read.of(model, body), body, method)


def of_ranking(model: LanguageModel, ranked: Ranked, truncate: bool) -> Bound:
    """Passes to rank documents, and to read the two highest without their words. Raises RaisonErrors."""
    count = len(ranked.documents)
    model.ranker  # noqa: B018 - refuses a model that does not rank
    model.encode([(ranked.query, document) for document in ranked.documents], "word", truncate)
    return Bound(count + 2, f"a ranking of {phrases.count(count, 'document')}", "fewer documents")


def of_check(model: LanguageModel, body: ExplainBody, method: Method) -> Bound:
    """Passes for a text, and for the tests of its explanation. Raises RaisonErrors as `of_prediction` does."""
    read = _Read.of(model, body)
    own = _prediction_bound(read, body, method)
    again = sum(bounds.of_text(method, size).passes + 1 for size in _changed(read))
    return Bound(own.passes + REMOVALS + again, f"{own.what} and its tests", own.instead)


@dataclass(frozen=True, slots=True)
class _Read:
    """A request's text, as the model that explains it reads it."""

    model: LanguageModel
    texts: Sequence[Given]
    encoding: Encoding
    ranked: int
    """The documents that are read to rank them; 0 for a text."""

    @classmethod
    def of(cls, model: LanguageModel, body: ExplainBody) -> "_Read":
        text: Any = given(body.text)
        count = 0
        ranked = read_ranked(text)
        if ranked is not None:
            # Every document is read once; then, at worst, the two with the most words are compared.
            [one], _ = ranked
            pairs = [(one.query, document) for document in one.documents]
            counts = model.encode(pairs, "word", body.truncate).unit_counts
            longest = sorted(range(len(pairs)), key=lambda place: -counts[place])[:2]
            text, model, count = one.pair(*longest), model.ranker, len(pairs)
        texts, unit = _reading(body, several=True).several([text])
        model = fitting(model, texts)
        return cls(model, texts, model.tokenized(texts, unit, body.truncate), count)

    @property
    def size(self) -> TextSize:
        return TextSize(len(self.encoding.units[0]), self.encoding.lengths[0])


def _prediction_bound(read: _Read, body: ExplainBody, method: Method) -> Bound:
    model, unit, predictions = read.model, read.encoding.unit, 1
    what = f"a text of {phrases.count(read.size.units, unit)}"
    if body.target == EACH and not read.ranked:
        settings = Settings(unit, None, body.of, body.removal, body.seed, body.truncate)
        threshold = threshold_of(model, EACH, body.threshold)
        predictions = len(each_target(model, read.texts, settings, threshold)[0])
        what = f"{phrases.count(predictions, 'prediction')} in {what}"
    cost = bounds.of_text(method, read.size, predictions)
    if body.select is not None:
        chooser = METRICS.create(body.select)
        check_selection([chooser], [method])
        assert isinstance(chooser, Metric), "metrics of many texts cannot choose"
        cost += bounds.of_choice(method, [chooser], read.encoding.units[0]).times(predictions)
    return Bound(cost.passes + read.ranked, what, "another method, fewer samples or unit='sentence'")


def _changed(read: _Read) -> list[TextSize]:
    """The harmlessly changed texts that a check may explain."""
    encoding = read.encoding
    if encoding.spans is not None:
        return []
    [text], [units] = encoding.texts, encoding.units
    stand_in = replace(bounds.blank_explanation(units), text=text, unit=encoding.unit, outputs=read.model.outputs)
    model, wordings = worded(read.model, HarmlessChange().rewordings(stand_in))
    texts = list(dict.fromkeys(wordings.values()))
    if not texts:
        return []
    changed = model.tokenized(texts, encoding.unit, True)
    return [TextSize(len(one), length) for one, length in zip(changed.units, changed.lengths, strict=True)]


def of_output(writer: Writer, body: ExplainBody, method: Method) -> Bound:
    """Passes for an output; for the model's own, those of one of the greatest length. Raises RaisonErrors."""
    asked, unit = one_prompt(_reading(body), given(body.text))
    prompt = writer.prompt(asked)
    most = body.max_new_tokens or NEW_TOKENS
    count = most if body.output is None else len(writer.output(prompt, body.output)[0].ids)
    size = TextSize(len(prompt.units(unit)[0]), len(prompt.ids))
    return Bound(
        bounds.of_output(method, size, count, body.earlier).passes,
        f"{phrases.count(count, 'output token')} after a prompt of {phrases.count(size.units, unit)}",
        "another method, fewer samples, a shorter output or unit='sentence'",
    )


def of_citations(writer: Writer, prompt: SourcedPrompt, wanted: AnswerRequest, how: CitationSettings) -> Bound:
    """Passes for citations; for the model's own answer, those of one of the greatest length. Raises RaisonErrors."""
    if wanted.answer is None:
        size = CitationSize.of_any_answer(prompt.source, wanted.max_new_tokens or ANSWER_TOKENS, how.draws)
    else:
        size = CitationSize.of(stated_answer(writer, prompt, wanted).answered, how.draws)
    parts = size.sources if how.within == "source" else size.sentences
    return Bound(
        bounds.of_citations(size, how).passes,
        f"{phrases.count(parts, 'part')} of the sources and {phrases.count(size.answer_tokens, 'answer token')}",
        "another method, fewer sources, fewer draws, a shorter answer or within='source'",
    )


def _reading(body: ExplainBody, *, several: bool = False) -> InputOptions:
    """How the text is read, or a list of it alone, whose spans are a list, too."""
    spans = tupled_spans(body.units)
    units = spans if not several or spans is None or isinstance(spans, str) else [spans]
    return InputOptions(cast("Any", body.unit), units, None, body.language)
