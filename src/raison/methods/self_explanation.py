"""Self-explanation: an instruction-tuned model is asked which units led to its answer."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from raison.core.errors import UnsupportedError
from raison.core.inputs.unit import segments
from raison.core.method import Cost, Method, Property, Rngs
from raison.core.model import LanguageModel
from raison.core.note_names import CAUTION
from raison.core.problem import Problem
from raison.core.settings.fields import Setting
from raison.models.adapters.offered.self_report import Reply, ask, writer_of
from raison.text.questions import Form, Subject, question
from raison.text.self_reports import SelfReport, read_self_report

Unreadable = Literal["error", "zeros"]


@dataclass(frozen=True)
class SelfExplanation(Method):
    """The answer of a language model to the question which units led to its prediction.

    For causal language models that classify through a prompt (`load(name, prompt=...)`). The model is shown an example,
    the classes, the text, its units and the class in question. It writes an answer by greedy decoding, as a turn of its
    chat template if it has one. `form="rank"` asks for the units in order of importance (the baseline LLM of Barkan et
    al. 2024, RPI): the k-th of n scores (n - k + 1) / n. `form="score"` asks for a number from -1 to 1 for each (Huang
    et al. 2023). The wording is in raison/text/questions. Returns (batch, units); a unit that the answer does not name
    scores 0.

    Answers are parsed strictly (raison/text/self_reports.py): a line counts if it names a unit exactly as written. The
    notes say how much of the answer was usable: `invented` (share of lines that name no unit), `missing` (share of
    units not named), `repeated`, `unreadable` (other lines) and `cut` (the answer was longer than `new_tokens`). An
    answer without a single unit is an error that shows its beginning. For comparisons over many texts,
    `unreadable="zeros"` gives zeros instead, with missing = 1 and a note `caution`.

    As many forward passes as the answer has tokens, its end included, at most `new_tokens`: the first over the whole
    question, the others over one token each.

    Guarantees nothing about the prediction: the model writes what is likely to be said, not how it computed the
    prediction. Small models seldom keep to the form.

    Differences from the papers: their exact wordings are not printed (RPI) or are for review scores (Huang), and
    neither says how answers that break the form were read. The class was predicted with the classifier's prompt, before
    this question; the explanation is not part of the prediction.

    Reference: huang2023can; barkan2024rpi.
    """

    form: Form = "rank"
    new_tokens: Annotated[int, Setting(least=1)] = 512
    unreadable: Unreadable = "error"

    reference: ClassVar[str] = "huang2023can"
    properties: ClassVar[frozenset[Property]] = frozenset()
    passes: ClassVar[str] = "at most new_tokens forward, all but the first of one token"

    @property
    def signed(self) -> bool:
        return self.form == "score"

    def check(self, model: LanguageModel) -> None:
        writer_of(model, "self_explanation")

    def attribute(self, problem: Problem, rngs: Rngs) -> Float[Tensor, "batch scored"]:
        writer = writer_of(problem.model, "self_explanation")
        replies, reports = [], []
        for text in range(len(problem.encoding)):
            reply = ask(writer, self._question(problem, text), self.new_tokens)
            problem.ledger.evaluations[text] += reply.passes
            units = [unit.text for unit in problem.encoding.units[text]]
            report = read_self_report(self.form, reply.text, units)
            self._check_read(problem.model.name, reply, report)
            replies.append(reply)
            reports.append(report)
        self._note(problem, replies, reports)
        return pad_sequence([torch.tensor(report.scores, dtype=torch.float64) for report in reports], batch_first=True)

    def cost(self, units: int) -> Cost:
        return Cost(forwards=self.new_tokens)

    def _question(self, problem: Problem, text: int) -> str:
        encoding, classes, target = problem.encoding, problem.model.classes, problem.target
        answer = classes[int(target.index[text])]
        if target.against is not None:
            answer += f", not {classes[int(target.against[text])]}"
        units = [unit.text for unit in encoding.units[text]]
        shown = "\n".join(segments(encoding.texts[text]))
        return question(self.form, Subject(shown, units, encoding.unit, classes, answer))

    def _check_read(self, name: str, reply: Reply, report: SelfReport) -> None:
        if report.missing == 1 and self.unreadable == "error":
            raise UnsupportedError(
                f"cannot read the self-explanation of {name}",
                [f"it names no unit of the text in the requested form, and begins {reply.text!r:.160}"],
                "Use an instruction-tuned model, another form (form='score' or 'rank'), or unreadable='zeros' to "
                "continue with scores of zero.",
            )

    def _note(self, problem: Problem, replies: list[Reply], reports: list[SelfReport]) -> None:
        for name in ("invented", "missing", "repeated", "unreadable"):
            problem.note(name, [getattr(report, name) for report in reports])
        problem.note("cut", [reply.cut for reply in replies])
        for notes, report in zip(problem.ledger.notes, reports, strict=True):
            if report.missing == 1:
                notes[CAUTION] = "the model's answer names no unit of the text: all scores are set to zero"
