"""The scalar of the output that is explained."""

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import get_args

import torch
from jaxtyping import Float, Int
from torch import Tensor

from raison.core.errors import InputError, UnknownNameError
from raison.core.targets.choices import Of as Of
from raison.core.targets.choices import TargetSpec as TargetSpec
from raison.core.targets.choices import for_each_text, is_whole_number
from raison.core.targets.outputs import outputs_of


@dataclass(frozen=True, slots=True)
class Target:
    """One class per text, or the difference of two, as a function of the logits.

    `of` is "probability", "logit", "log_odds" (log p/(1-p)), "margin" (logit minus the logit of `against`) or
    "log_probability".
    With `against`, every choice of `of` becomes the difference between the two classes.
    `multi_label` models have one sigmoid per class instead of a softmax over all.
    """

    index: Int[Tensor, " batch"]
    against: Int[Tensor, " batch"] | None
    of: Of
    multi_label: bool = False

    def scalar(self, logits: Float[Tensor, "batch classes"]) -> Float[Tensor, " batch"]:
        """The explained number of each row, differentiable."""
        value = self._of_class(logits, self.index.to(logits.device))
        if self.against is None:
            return value
        return value - self._of_class(logits, self.against.to(logits.device))

    def rows(self, texts: Int[Tensor, " rows"]) -> "Target":
        """The same target for the given texts, repeated as often as they are named."""
        against = None if self.against is None else self.against[texts]
        return Target(self.index[texts], against, self.of, self.multi_label)

    def row(self, text: int, repeats: int) -> "Target":
        """The target of one text, for each of its masks."""
        return self.rows(torch.full((repeats,), text, dtype=torch.long))

    def _of_class(
        self, logits: Float[Tensor, "batch classes"], index: Int[Tensor, " batch"]
    ) -> Float[Tensor, " batch"]:
        column = index[:, None]
        own = logits.gather(1, column)[:, 0]
        if self.of in ("logit", "margin") or (self.of == "log_odds" and self.multi_label):
            return own
        if self.of == "log_odds":
            # log p_c/(1-p_c) = z_c - log sum_{j != c} exp z_j, exact where p_c rounds to one
            return own - logits.scatter(1, column, -torch.inf).logsumexp(-1)
        if self.of == "probability":
            return probabilities(logits, self.multi_label).gather(1, column)[:, 0]
        logs = torch.nn.functional.logsigmoid(logits) if self.multi_label else logits.log_softmax(-1)
        return logs.gather(1, column)[:, 0]


def probabilities(logits: Float[Tensor, "batch classes"], multi_label: bool) -> Float[Tensor, "batch classes"]:
    """Probabilities of the classes: softmax, or one sigmoid per class."""
    return logits.sigmoid() if multi_label else logits.softmax(-1)


def check_of(of: str | None, classes: tuple[str, ...], multi_label: bool) -> Of:
    """The scalar to explain: as requested; by default the probability, or the number of a model with one number.

    Raises UnknownNameError, and InputError for a scalar that the model's outputs do not have.
    """
    outputs = outputs_of(classes, multi_label)
    if of is None:
        return "logit" if outputs == "number" else "probability"
    if of not in get_args(Of):
        raise UnknownNameError("quantity to explain (of=)", of, get_args(Of))
    if outputs == "number" and of != "logit":
        raise InputError(
            f"of='{of}' needs classes, and this model outputs one number, '{classes[0]}': leave of out, or use "
            "of='logit', which is that number in its own units."
        )
    if of == "margin" and len(classes) == 1:
        raise InputError(
            f"of='margin' is the difference between two classes, and this model has only one, '{classes[0]}'."
        )
    return of  # type: ignore[return-value]


def resolve_target(
    spec: TargetSpec,
    of: str | None,
    logits: Float[Tensor, "batch classes"],
    classes: tuple[str, ...],
    multi_label: bool,
) -> Target:
    """The target of every text from the user's specification; `logits` are those of the unperturbed texts. None is a
    text's predicted class, in a list and in a pair, too.

    A margin without a second class is taken against the strongest other class of the unperturbed text, which then stays
    fixed. For a model of one number, the only target is this number.
    """
    scale = check_of(of, classes, multi_label)
    if isinstance(spec, tuple):
        return _of_pairs([spec] * len(logits), scale, logits, classes, multi_label)
    if isinstance(spec, list):
        spec = for_each_text(spec, len(logits))
        if any(isinstance(item, tuple) for item in spec):
            return _of_pairs(spec, scale, logits, classes, multi_label)
        likeliest = logits.argmax(-1).tolist()
        chosen = torch.tensor(
            [top if item is None else _class_index(item, classes) for item, top in zip(spec, likeliest, strict=True)]
        )
    else:
        chosen = logits.argmax(-1) if spec is None else _repeat(_class_index(spec, classes), logits)
    runner_up = None
    if scale == "margin":
        runner_up = _strongest_other(logits, chosen)
    return Target(chosen, runner_up, scale, multi_label)


def _strongest_other(logits: Float[Tensor, "batch classes"], chosen: Int[Tensor, " batch"]) -> Int[Tensor, " batch"]:
    """The class with the largest logit among all but the chosen one, also where all others are -inf."""
    others = torch.arange(logits.shape[1] - 1).expand(len(logits), -1)
    others = others + (others >= chosen[:, None]).long()
    return others.gather(1, logits.gather(1, others).argmax(-1, keepdim=True))[:, 0]


def check_targets(targets: Sequence[object], classes: tuple[str, ...]) -> None:
    """Raise InputError or UnknownNameError for an entry of a list of targets that names no class."""
    for item in targets:
        for part in item if isinstance(item, tuple) else (item,):
            if part is not None:
                _class_index(part, classes)


def check_numbers(spec: object, classes: tuple[str, ...]) -> None:
    """Raise InputError for a caller's number that is also the name of a label in another place.

    `resolve_target` reads all numbers as places: most of them are raison's own.
    """
    for item in spec if isinstance(spec, list | tuple) else (spec,):
        if isinstance(item, tuple):
            check_numbers(item, classes)
        elif isinstance(item, Integral) and str(item) in classes and classes.index(str(item)) != item:
            raise InputError(
                f"target {item} is a label's name here, and numbers count the labels from 0: give the label as a "
                f"string, '{item}' (on the command line in two kinds of quotes, '\"{item}\"')."
            )


def _of_pairs(
    spec: Sequence[object], of: Of, logits: Float[Tensor, "batch classes"], classes: tuple[str, ...], multi_label: bool
) -> Target:
    """The target of texts that each have their own pair. Raises InputError."""
    pairs = []
    for number, (item, row) in enumerate(zip(spec, logits, strict=True)):
        if not isinstance(item, tuple):
            raise InputError(
                f"targets[{number}] is {item!r:.60}, but other entries are pairs: give (this, not that) for each."
            )
        pairs.append(_pair(item, row, classes))
    index, against = torch.tensor(pairs).T
    return Target(index, against, of, multi_label)


def _pair(spec: tuple[object, ...], logits: Float[Tensor, " classes"], classes: tuple[str, ...]) -> tuple[int, int]:
    """The explained class of a text and the one that it is explained against; None is the predicted one."""
    if len(spec) != 2:
        raise InputError(f"a pair of targets is (this, not that); got {len(spec)} entries.")
    if len(classes) == 1:
        raise InputError(
            f"a pair of targets (this, not that) needs two classes, and this model has one output, '{classes[0]}': "
            "leave target and contrast out."
        )
    index, against = (int(logits.argmax()) if one is None else _class_index(one, classes) for one in spec)
    if index == against:
        why = "the model predicts it" if None in spec else "name two different ones"
        raise InputError(f"both targets are the class '{classes[index]}'; {why}.")
    return index, against


def _repeat(index: int, logits: Tensor) -> Tensor:
    return torch.full((len(logits),), index, dtype=torch.long)


def _class_index(item: object, classes: tuple[str, ...]) -> int:
    if isinstance(item, str):
        lowered = [name.lower() for name in classes]
        if item in classes:
            return classes.index(item)
        if lowered.count(item.lower()) == 1:
            return lowered.index(item.lower())
        raise UnknownNameError("label", item, classes)
    if not is_whole_number(item):
        raise InputError(f"target {item!r:.60} is not a class: give a label, its number, or a pair (this, not that).")
    number = int(item)
    if not 0 <= number < len(classes):
        if len(classes) == 1:
            raise InputError(
                f"class {number} does not exist: the model has one output, '{classes[0]}'; leave target and contrast "
                "out."
            )
        raise InputError(
            f"class {number} does not exist: the model has {len(classes)} classes, 0 to {len(classes) - 1}."
        )
    return number
