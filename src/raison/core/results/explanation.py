"""One score per unit, with its provenance. Plain numbers: this file never needs torch."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, cast, get_args

from raison.core.errors import DataError
from raison.core.inputs.unit import Text, Unit
from raison.core.note_names import EACH_FROM
from raison.core.results.notes import check_notes, noise_in
from raison.core.results.viewed import ViewedResult
from raison.core.results.views import View, called
from raison.core.settings.reading import NAME, Fields
from raison.core.targets.answer import ExplainedAnswer
from raison.core.targets.choices import Of
from raison.core.targets.outputs import THRESHOLD, Outputs
from raison.core.targets.place import Place

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure
    from shap import Explanation as ShapExplanation

SCHEMA = 1

OTHER = "<other>"
"""The class of all tokens except a written token and the token it is contrasted with."""
_OPTIONAL = ("truncated", "notes", "version", "schema", "answer", "signed", "outputs", "place")


@dataclass(frozen=True, slots=True, repr=False)
class Explanation(ViewedResult):
    """Scores of one text's units for one prediction.

    - `value_full` and `value_empty`: the target's value on the whole text and with every unit removed.
    - `evaluations` and `gradients`: the numbers of forward and backward passes of single sequences that the method
      asked for. The prediction, and the two values above if the method does not need them, are not counted.
    - `seconds`: the text's share of its batch's time, by its passes and units.
    - `truncated`: the number of tokens that were cut off.
    - `notes`: what the method reports besides its scores.
    - `answer`: the explained part of the context, if the model answers questions; `classes` are then that answer and
      all others.
    - `signed`: whether scores above zero speak for the target and those below against it. If not, scores say only how
      much a unit matters, and none is below zero.
    - `place`: the entity or the masked word that is explained, if the model predicts at positions in the text;
      `classes` are then its tags, or the words at the mask.
    - `outputs`: whether the model gives one of several classes, any of some labels, one number, or the probability of
      a given statement. A number has no probabilities and is `value_full` itself.
    """

    _what: ClassVar[str] = "an explanation"
    _page: ClassVar[View] = View.EXPLANATION_PAGE
    _fragment: ClassVar[View] = View.EXPLANATION_FRAGMENT

    text: Text
    unit: str
    units: tuple[Unit, ...]
    scores: tuple[float, ...]
    classes: tuple[str, ...]
    probabilities: tuple[float, ...]
    target: str
    against: str | None
    of: str
    value_full: float
    value_empty: float
    method: str
    config: dict[str, Any]
    model: str
    removal: str
    seed: int
    evaluations: int
    gradients: int
    seconds: float
    truncated: int = 0
    notes: dict[str, Any] = field(default_factory=dict)
    version: str = ""
    schema: int = SCHEMA
    answer: ExplainedAnswer | None = None
    signed: bool = True
    outputs: Outputs = "classes"
    place: Place | None = None

    @property
    def confidence(self) -> float | None:
        """The probability of `prediction`, or of a written token that the rest of the vocabulary outweighs; None for a
        number, and for an answer or a tag of which another was explained."""
        if self.outputs == "number" or (self.answer is not None and not self.answer.is_predicted):
            return None
        if self.answer is not None:
            return self.probabilities[0]
        if self.place is not None:
            return dict(zip(self.classes, self.probabilities, strict=True)).get(self.prediction)
        return self.probabilities[0] if self.is_outweighed else max(self.probabilities)

    @property
    def number(self) -> float | None:
        """The model's number for the whole text; None for a model of classes."""
        return self.value_full if self.outputs == "number" else None

    @property
    def is_outweighed(self) -> bool:
        """Whether a language model wrote the target with less probability than all other tokens have together, which
        predict nothing."""
        return self.prediction == OTHER and self.target == self.classes[0]

    @property
    def prediction(self) -> str:
        """The class with the highest probability, the name of the model's number, or the text of its own answer.

        For a model of labels it is the likeliest label, whether it is predicted (`decided`) or not.
        """
        if self.answer is not None:
            return self.answer.predicted.text
        if self.place is not None:
            return self.place.predicted
        if self.outputs == "number":
            return self.classes[0]
        return self.classes[max(range(len(self.classes)), key=self.probabilities.__getitem__)]

    @property
    def threshold(self) -> float:
        """The minimum probability of a predicted label: one half, unless target="each" set another."""
        return float(self.notes.get(EACH_FROM, THRESHOLD))

    @property
    def decided(self) -> tuple[str, ...]:
        """The predicted labels, those with a probability of at least `threshold`; for other models the prediction."""
        if self.outputs != "labels":
            return (self.prediction,)
        pairs = zip(self.classes, self.probabilities, strict=True)
        return tuple(name for name, probability in pairs if probability >= self.threshold)

    @property
    def completeness_gap(self) -> float:
        """Sum of the scores minus (value_full - value_empty); zero for a complete method."""
        return sum(self.scores) - (self.value_full - self.value_empty)

    def order(self) -> tuple[int, ...]:
        """Units from the highest score to the lowest; ties keep the order of the text."""
        return tuple(sorted(range(len(self.scores)), key=lambda unit: (-self.scores[unit], unit)))

    @property
    def unranked(self) -> tuple[int, ...]:
        """Units whose scores are within the noise of a model behind a server; none for other models."""
        noise = noise_in(self.notes)
        return tuple(unit for unit, score in enumerate(self.scores) if noise and abs(score) <= noise)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values. `answer` and `place` are included only if there is one, `decided` only for labels."""
        values = asdict(self)
        values["units"] = [unit.to_dict() for unit in self.units]
        if self.answer is None:
            del values["answer"]
        if self.place is None:
            del values["place"]
        if self.outputs == "labels":
            values["decided"] = list(self.decided)
        return values

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Explanation":
        """The inverse of `to_dict`. Raises DataError for missing or invalid fields, or a newer schema."""
        record = Fields(data, cls._what)
        record.schema(SCHEMA)
        record.need([f.name for f in fields(cls) if f.name not in _OPTIONAL])
        text = data["text"] if isinstance(data["text"], str) else _strings(record)
        parts = (text,) if isinstance(text, str) else text
        units = record.units(parts)
        classes = record.strings("classes")
        if not classes:
            record.refuse("classes", "a list of at least one")
        values = {f.name: data[f.name] for f in fields(cls) if f.name in data} | _plain(record)
        values |= {"text": text, "units": units, "classes": classes}
        values["scores"] = record.numbers("scores", len(units))
        values["probabilities"] = record.numbers("probabilities", None, 0.0, 1.0 + 1e-6)
        if "notes" in data:
            check_notes(data, record.what, len(units))
        check_sign(data.get("signed", True), values["scores"])
        _check_outputs(data)
        _check_target(record)
        if data.get("answer") is not None:
            values["answer"] = _answer(data["answer"], parts[-1])
        if data.get("place") is not None:
            values["place"] = Place.read(data["place"], parts)
        return cls(**values)

    def to_frame(self) -> "pd.DataFrame":
        """One row per unit with its text, span and score, and with its name if units have names."""
        # Only now: no other result needs it.
        import pandas as pd

        return pd.DataFrame(
            {
                "unit": [unit.text for unit in self.units],
                **({"name": [unit.name for unit in self.units]} if any(unit.name for unit in self.units) else {}),
                "segment": [unit.segment for unit in self.units],
                "start": [unit.start for unit in self.units],
                "end": [unit.end for unit in self.units],
                "score": list(self.scores),
            }
        )

    def plot(self) -> "Figure":
        """Bars of the units' scores, as a matplotlib figure (needs the extra `report`)."""
        return cast("Figure", called("figures.scores.figure", self))

    def to_shap(self) -> "ShapExplanation":
        """The scores as a shap.Explanation, whose base value is `value_empty` (needs shap)."""
        return called("explanations.shap_values.to_shap", self)

    def __repr__(self) -> str:
        unranked = {*self.unranked}
        ranked = [unit for unit in self.order() if unit not in unranked]
        top = ", ".join(f"{self.units[i].label!r} {self.scores[i]:+.3f}" for i in ranked[:3]) or "none above the noise"
        return f"<Explanation {self.method} of {self.target!r}: {len(self.units)} {self.unit}s, top {top}>"


def _strings(record: Fields) -> tuple[str, str] | tuple[str, str, str]:
    """A text of several strings."""
    strings = record.strings("text")
    if len(strings) == 2:
        return strings[0], strings[1]
    if len(strings) != 3:
        record.refuse("text", "a string, or a list of two or three")
    return strings[0], strings[1], strings[2]


def _check_outputs(data: Mapping[str, Any]) -> None:
    """DataError unless `outputs` is a known kind, with a probability for each class, or none for a number."""
    outputs, classes = data.get("outputs", "classes"), len(data["classes"])
    if outputs not in get_args(Outputs):
        raise DataError(f"not an explanation: outputs is {outputs!r:.40}; it must be one of {get_args(Outputs)}.")
    if outputs == "number" and classes != 1:
        raise DataError(f"not an explanation: its output is one number, but it names {classes} classes.")
    wanted = 0 if outputs == "number" else classes
    if len(data["probabilities"]) != wanted:
        raise DataError(f"not an explanation: it has {len(data['probabilities'])} probabilities in place of {wanted}.")


def _check_target(record: Fields) -> None:
    """DataError unless the explained quantity is known and the target is one of the classes, if only classes are
    explained."""
    record.choice("of", get_args(Of))
    data = record.data
    if data.get("outputs", "classes") not in ("classes", "labels") or data.get("answer") or data.get("place"):
        return
    for name in ("target", "against"):
        if data[name] is not None and data[name] not in data["classes"]:
            record.refuse(name, "one of its classes")


def check_sign(signed: object, scores: Iterable[float]) -> None:
    """DataError unless `signed` is true or false and the scores agree with it."""
    if not isinstance(signed, bool):
        raise DataError(f"not an explanation: signed is {signed!r:.40}; it must be true or false.")
    if not signed and any(score < 0 for score in scores):
        raise DataError("not an explanation: it says that no score is below zero (signed: false), but one is.")


def _plain(record: Fields) -> dict[str, float]:
    """The fields that are floats, after checking all fields with a single value."""
    for name in ("unit", "of", "removal"):
        record.string(name, NAME)
    for name in ("method", "model", "target"):
        record.string(name)
    record.optional_string("against")
    record.whole("seed", None)
    record.plain("config")
    for name in ("evaluations", "gradients", "truncated"):
        if name in record.data:
            record.whole(name)
    if "version" in record.data:
        record.string("version", NAME)
    return {
        "value_full": record.number("value_full"),
        "value_empty": record.number("value_empty"),
        "seconds": record.number("seconds", 0.0),
    }


def _answer(data: Any, context: str) -> ExplainedAnswer:
    if not isinstance(data, dict) or not isinstance(data.get("predicted"), dict):
        raise DataError(f"not an explanation: its answer is {data!r:.40}; it must be an object.")
    for answer in (Fields(data, "an explanation: the answer"), Fields(data["predicted"], "an explanation: the answer")):
        for name in ("start", "end"):
            answer.whole(name)
            if answer.data[name] > len(context):
                answer.refuse(name, f"within the context's {len(context)} characters")
        answer.string("text")
    shares = {
        name: Fields(data, "an explanation: the answer").number(name, 0.0, 1.0 + 1e-6)
        for name in ("start_probability", "end_probability")
    }
    try:
        return ExplainedAnswer.from_dict(data | shares)
    except (KeyError, TypeError) as error:
        raise DataError(f"not an explanation: its answer cannot be read ({error}).") from None
