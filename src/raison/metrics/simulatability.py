"""Simulatability: do explanations help a student to learn what the model predicts?"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import numpy as np

from raison.core.metric import GroupEvidence, GroupMetric, Need
from raison.core.results.explanation import Explanation
from raison.core.settings.fields import Setting

Part = Literal["absolute", "positive"]
FEWEST = 10
"""Minimum number of texts of which a share can be held out."""


@dataclass(frozen=True)
class Simulatability(GroupMetric):
    """Share of held-out texts on which a student, taught with the explanations, predicts what the model predicted.

    1/|D| sum 1{y~ = argmax S(x)} (Xie et al. 2024, eq. 6; Pruthi et al. 2022, Fernandes et al. 2022): 1 or 0 per
    held-out text. The student is a classifier that was never fine-tuned. It learns from `train_share` of the texts by
    cross-entropy with the model's predicted class + `weight` x KL(r || r*) (their eq. 7 with the sign of cross-entropy
    corrected). r is the explanation on the student's tokens, with a unit's mass split evenly over its tokens. r* is the
    student's own attention explanation as in SMaT: attention scores averaged over query rows, heads of all layers mixed
    by coefficients that it learns, softmax over tokens. Held-out texts are presented without explanations. The split,
    the student's initial weights and the order of its training texts depend on `seed`, not on the method. In 0..1,
    higher is better. If the model answers questions, the student is a fresh question answering model that learns the
    first and the last token of the model's answers (the mean of two cross-entropies). It scores 1 if it predicts both,
    counted in its own tokens.

    The student is constrained by its data: only these texts, ideally none of which the model was trained on (the paper
    gives 20 % of a test set, 2,000 to 5,000 texts). A single number means little: compare with `weight=0`, the same
    student without explanations, with random scores, and over several seeds.

    Open choices. `part`: r = |s| / sum |s|, or only "positive" scores; a text whose scores are all zero gives no
    explanation to learn from. `student`: "minilm", a folder, or "tiny", two random layers of BERT with MiniLM's
    tokenizer (give it learning_rate=1e-3 and more epochs).

    Cost: `epochs` forward and backward passes of the student per training text, and none of the model; minutes on a CPU
    for texts of a few hundred tokens.

    Differences from the paper: the student learns by AdamW at a constant rate for `epochs` epochs, where the paper has
    SGD (its B.1), because few steps must suffice. The paper's equation 7 has no weight, which is weight=1; the default
    of 5 is that of SMaT's code for attention.
    """

    student: Annotated[str, Setting(outside=True)] = "minilm"
    train_share: Annotated[float, Setting(above=0, below=1, words="a share above 0 and below 1, such as 0.8")] = 0.8
    weight: Annotated[float, Setting(least=0, words="0 (no explanations) or more")] = 5.0
    epochs: Annotated[int, Setting(least=1)] = 5
    batch: Annotated[int, Setting(least=1)] = 16
    learning_rate: Annotated[float, Setting(above=0)] = 1e-4
    seed: int = 0
    max_tokens: Annotated[int, Setting(least=FEWEST)] = 256
    part: Part = "absolute"
    reference: ClassVar[str] = "xie2024ivra"
    higher_is_better: ClassVar[bool] = True
    needs: ClassVar[frozenset[Need]] = frozenset({Need.SEVERAL_TEXTS, Need.CLASSES, Need.WHOLE_TEXTS})
    fewest: ClassVar[int] = FEWEST

    @property
    def files(self) -> tuple[Path, ...]:
        return tuple(sorted(path for path in Path(self.student).glob("*") if path.is_file()))

    @property
    def size(self) -> None:
        return None

    def measure(self, explanations: Sequence[Explanation], evidence: GroupEvidence) -> Sequence[float]:
        # Only now: transformers takes longer to import than the list of metrics to print.
        from raison.models.derived.student import Course, Lesson, new_student, predict, teach

        if explanations[0].answer is not None:
            return self._of_answers(explanations)
        shown, held = self.split(len(explanations))
        classes = explanations[0].classes
        lessons = [
            Lesson(e.text, classes.index(e.prediction), e.units, self._matters(e.scores))
            for e in (explanations[i] for i in shown)
        ]
        student = new_student(self.student, classes, self.max_tokens, self.seed)
        teach(student, lessons, Course(self.weight, self.epochs, self.batch, self.learning_rate, self.seed))
        predicted = predict(student, [explanations[i].text for i in held])
        return [float(classes[label] == explanations[i].prediction) for i, label in zip(held, predicted, strict=True)]

    def _of_answers(self, explanations: Sequence[Explanation]) -> Sequence[float]:
        """The same where the model answers questions."""
        from raison.models.derived.student import Course, Lesson, answers_alike, new_answering_student, teach

        shown, held = self.split(len(explanations))
        lessons = [
            Lesson(e.text, e.answer.predicted, e.units, self._matters(e.scores))
            for e in explanations
            if e.answer is not None
        ]
        student = new_answering_student(self.student, self.max_tokens, self.seed)
        course = Course(self.weight, self.epochs, self.batch, self.learning_rate, self.seed)
        teach(student, [lessons[i] for i in shown], course)
        return [float(alike) for alike in answers_alike(student, [lessons[i] for i in held])]

    def split(self, texts: int) -> tuple[list[int], list[int]]:
        """Numbers of the training texts of the student, and of its test texts, each in order."""
        shown = min(max(round(self.train_share * texts), 1), texts - 1)
        order = np.random.default_rng(self.seed).permutation(texts)
        return sorted(order[:shown].tolist()), sorted(order[shown:].tolist())

    def _matters(self, scores: Sequence[float]) -> tuple[float, ...]:
        return tuple(abs(score) if self.part == "absolute" else max(score, 0.0) for score in scores)
