"""The cost of citing, estimated before it runs."""

import time
from dataclasses import dataclass, replace
from typing import Unpack

from raison.core.capabilities.asked_again import AskedAgain
from raison.core.errors import InputError
from raison.core.inputs.unit import PART, Granularity
from raison.explaining.attribution import check
from raison.explaining.bounds import CitationSize, of_citations
from raison.explaining.cite import check_generative
from raison.explaining.settings import Settings
from raison.explaining.sources.answer_statements import AnswerRequest, StatementSpans, stated_answer
from raison.explaining.sources.citation_settings import CitationOptions, CitationSettings
from raison.explaining.sources.source_necessity import RandomRemovals, passes_of
from raison.explaining.sources.sourced_prompt import Question, Sources, sourced_prompt
from raison.judging.estimate import speed_of
from raison.judging.plan import Plan, plan_rows
from raison.models.adapters.blackbox.server_writer import ServedWriter
from raison.models.adapters.writing.statements import Statements
from raison.models.adapters.writing.writer import Writer
from raison.models.tokens.written_answer import WrittenAnswer


@dataclass(frozen=True, slots=True)
class CiteEstimate:
    """Upper bounds of the cost of citing: prompts that statements or lights share are run once.

    `passes` are masked prompts with the whole answer after them, of `tokens` tokens at most; `backwards` those with
    gradients. `seconds` includes the time that the model took to write its answer, which is not counted among passes.
    For a model behind a server, `requests`, their tokens and their cost are estimated, but not the time.
    """

    sources: int
    sentences: int
    statements: int
    tokens: int
    passes: int
    backwards: int
    seconds: float
    model_bytes: int
    batch_bytes: int
    requests: int = 0
    request_tokens: int = 0
    request_cost: float = 0.0

    def text(self) -> str:
        """In words."""
        of_tokens = f"at most {self.passes:,} passes of {self.tokens:,} tokens"
        gradients = f", {self.backwards:,} of them with gradients" if self.backwards else ""
        if self.requests:
            return (
                f"at most {self.requests:,} requests of {self.request_tokens:,} tokens, cost {self.request_cost:,.4g}; "
                "none was sent, and a server's time is not estimated"
            )
        memory = f"weights {self.model_bytes / 2**20:,.0f} MiB, a full batch {self.batch_bytes / 2**20:,.0f} MiB"
        return f"{of_tokens}{gradients}, about {self.seconds:,.1f} s here; {memory}"


def estimate_cite(
    writer: Writer,
    question: Question,
    sources: Sources | None = None,
    *,
    answer: str | None = None,
    statements: StatementSpans | None = None,
    **options: Unpack[CitationOptions],
) -> CiteEstimate:
    """Count the passes of `raison.cite` with the same arguments, and time a few of them.

    Without an answer the model writes it first, because its statements and tokens decide the cost; no request is sent
    to a server, which therefore needs the answer. Raises what `raison.cite` raises before it runs.
    """
    check_generative(writer)
    if isinstance(writer, ServedWriter) and answer is None:
        raise InputError(f"an estimate sends no request to {writer.name}, so its answer is unknown: pass answer=.")
    how = CitationSettings.from_options(**options)
    wanted = AnswerRequest(answer, statements, how.max_new_tokens)
    prompt = sourced_prompt(writer, question, sources, how.template)
    started = time.perf_counter()
    answered = stated_answer(writer, prompt, wanted).answered
    writing = time.perf_counter() - started
    model = Statements(writer, [answered])
    check(model, how.method)
    plan = _plan(model, answered, how)
    encoding = model.encode([answered.texts], plan.settings.unit)
    size = CitationSize.of(answered, how.draws)
    if how.draws:
        size = replace(size, lights=passes_of(answered.source, RandomRemovals(how.draws, how.seed)))
    cost = of_citations(size, how)
    speed = speed_of(plan, encoding)
    prices = model.ask(AskedAgain).prices(encoding) if model.offers(AskedAgain) else []
    price = prices[0].times(cost.forwards) if prices else None
    [length] = encoding.lengths
    return CiteEstimate(
        sources=size.sources,
        sentences=size.sentences,
        statements=size.statements,
        tokens=length,
        passes=cost.forwards,
        backwards=cost.backwards,
        seconds=writing + speed.seconds(cost, length),
        model_bytes=speed.model_bytes,
        batch_bytes=speed.batch_bytes,
        requests=0 if price is None else price.requests,
        request_tokens=0 if price is None else price.tokens,
        request_cost=0.0 if price is None else price.cost,
    )


def _plan(model: Statements, answered: WrittenAnswer, how: CitationSettings) -> Plan:
    """One comparison of the method on the answer, whose passes are timed."""
    unit: Granularity = "sentence" if how.within == "sentence" else PART
    rows, settings = (
        plan_rows([how.method], (), (how.seed,)),
        Settings(unit, None, how.of, how.removal, how.seed),
    )
    return Plan(model, (answered.texts,), (), rows, (), settings, "")
