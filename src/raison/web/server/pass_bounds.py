"""The maximum number of passes of a request, before it runs, and its refusal if the server allows fewer."""

from dataclasses import dataclass
from typing import Any, cast

from raison.core.errors import InputError
from raison.core.method import Method
from raison.core.metric import Metric
from raison.core.model import LanguageModel
from raison.core.targets.choices import EACH
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
from raison.explaining.sources.sourced_prompt import SourcedPrompt
from raison.metrics import CATALOGUE as METRICS
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
    text, more = given(body.text), 0
    ranked = read_ranked(text)
    if ranked is not None:
        # Every document is read once; then, at worst, the two with the most words are compared.
        [one], _ = ranked
        pairs = [(one.query, document) for document in one.documents]
        counts = model.encode(pairs, "word", body.truncate).unit_counts
        longest = sorted(range(len(pairs)), key=lambda place: -counts[place])[:2]
        text, model, more = one.pair(*longest), model.ranker, len(pairs)
    texts, unit = _reading(body, several=True).several([text])
    model = fitting(model, texts)
    encoding = model.tokenized(texts, unit, body.truncate)
    [units], [tokens] = encoding.units, encoding.lengths
    what, predictions = f"a text of {phrases.count(len(units), unit)}", 1
    if body.target == EACH and ranked is None:
        settings = Settings(unit, None, body.of, body.removal, body.seed, body.truncate)
        threshold = threshold_of(model, EACH, body.threshold)
        predictions = len(each_target(model, texts, settings, threshold)[0])
        what = f"{phrases.count(predictions, 'prediction')} in {what}"
    cost = bounds.of_text(method, TextSize(len(units), tokens), predictions)
    if body.select is not None:
        chooser = METRICS.create(body.select)
        check_selection([chooser], [method])
        assert isinstance(chooser, Metric), "metrics of many texts cannot choose"
        cost += bounds.of_choice(method, [chooser], units).times(predictions)
    return Bound(cost.passes + more, what, "another method, fewer samples or unit='sentence'")


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
