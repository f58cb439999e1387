"""Functions of texts whose explanations are known: a word adds its weight, and nothing else counts."""

import numpy as np
from numpy.typing import NDArray

import raison
from raison.text.segment import word_spans

WEIGHTS = {"good": 1.0, "bad": -1.25, "film": 0.25, "not": -0.5, "quiet": 0.125, "!": 0.75}
TEXTS = ("A good film, not bad!", "bad", "It is a quiet film and not a good one.")
CLASSES = ("negative", "positive")

Numbers = NDArray[np.float64]


def weight(text: str) -> float:
    """The sum of the weights of a text's words."""
    return sum(WEIGHTS.get(text[start:end].lower(), 0.0) for start, end in word_spans(text))


def rating(texts: list[str]) -> Numbers:
    """A number for each text."""
    return np.array([weight(text) for text in texts])


def shares(texts: list[str]) -> Numbers:
    """Two probabilities whose log-odds are the text's weight."""
    positive = 1 / (1 + np.exp(-rating(texts)))
    return np.stack([1 - positive, positive], 1)


def labels(texts: list[str]) -> Numbers:
    """Two labels, each with a probability of its own: its log-odds are the weight, and twice the weight."""
    return 1 / (1 + np.exp(-np.outer(rating(texts), [1.0, 2.0])))


def overlap(pairs: list[tuple[str, str]]) -> Numbers:
    """A number for each pair of texts: the weights of both."""
    return np.array([weight(first) + 2 * weight(second) for first, second in pairs])


class Counted:
    """A function that writes down what it was asked."""

    def __init__(self, function: object = shares) -> None:
        self.function = function
        self.calls: list[list[str]] = []

    def __call__(self, texts: list[str]) -> object:
        self.calls.append(list(texts))
        return self.function(texts)  # type: ignore[operator]

    @property
    def sizes(self) -> list[int]:
        """How many texts each call had."""
        return [len(call) for call in self.calls]


def scores(function: object, **agreed: object) -> tuple[float, ...]:
    """Occlusion's scores of the first text, with a function as the model."""
    model = raison.load(function, **{"classes": CLASSES} | agreed)
    return raison.explain(model, TEXTS[0], "occlusion", target="positive").scores
