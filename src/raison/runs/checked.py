"""Validation of the files in a run's or study's folder when they are read; errors take one line."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from raison.core.errors import DataError
from raison.core.reading import Fields
from raison.numerics.statistics.bootstrap import POOLS

TEXTS = 10_000_000
"""Maximum number of texts of a run; memory for all is reserved before any is read."""

HIGHEST = 1e300


def check_schema(header: object, path: Path, newest: int) -> None:
    """Raise DataError for something other than a header, or one of a newer version."""
    if not isinstance(header, dict):
        raise DataError(f"cannot read {path}: it does not hold a JSON object.")
    schema = header.get("schema", 0)
    if not isinstance(schema, int) or schema > newest:
        raise DataError(f"{path} was written by a newer version of raison: this one reads schemas up to {newest}.")


def check_run(header: Mapping[str, Any], path: Path) -> None:
    """A run's run.json. Raises DataError."""
    head = Fields(header, f"the head of a run ({path})")
    for name in ("raison", "model", "data"):
        head.string(name)
    head.whole("texts", most=TEXTS)
    head.mapping("versions")
    head.mapping("settings")
    settings = Fields(header["settings"], f"{head.what}: settings")
    settings.string("unit")
    settings.string("of")
    settings.whole("seed", least=None)
    for row in head.objects("rows"):
        row.string("label")
        row.string("method")
        row.optional_string("selected_by")
        if not row.wholes("seeds", least=None):
            row.refuse("seeds", "a list of at least one number")
    check_metrics(head)


def check_metrics(head: Fields) -> None:
    """What a header says of the metrics. Raises DataError."""
    for metric in head.objects("metrics"):
        if set(metric.data) - {"label", "higher_is_better", "pool", "grouped"}:
            raise DataError(f"not {head.what}: the metric {metric.data!r:.60} has unknown fields.")
        metric.string("label")
        if metric.data.get("higher_is_better") is not None:
            metric.flag("higher_is_better")
        metric.choice("pool", (*POOLS,))
        metric.flag("grouped")


def parts_of(header: Mapping[str, Any]) -> tuple[int, ...]:
    """The number of values that a record has for each metric of single texts."""
    return tuple(1 if metric["pool"] == "mean" else 2 for metric in header["metrics"] if not metric["grouped"])


def check_record(data: Mapping[str, Any], header: Mapping[str, Any], parts: Sequence[int]) -> None:
    """One line of records.jsonl. Raises DataError."""
    line = Fields(data, "a record")
    check_key(line, header["texts"])
    for place, (value, wanted) in enumerate(zip(line.items("scores", len(parts)), parts, strict=True)):
        numbers = value if isinstance(value, list) else [value]
        if len(numbers) != wanted or not all(_number(part) for part in numbers):
            raise DataError(f"not a record: scores[{place}] is {value!r:.40}, and has to be {_told(wanted)}.")
    for name in ("evaluations", "gradients", "seconds"):
        line.number(name, 0.0)
    line.string("target")
    line.string("prediction")
    line.whole("units", most=TEXTS)


def check_key(line: Fields, texts: int) -> None:
    """The key of a line: row, seed and text. Raises DataError."""
    line.string("row")
    line.whole("seed", least=None)
    line.whole("text", most=texts - 1)


def check_group(data: Mapping[str, Any]) -> None:
    """One line of groups.jsonl. Raises DataError."""
    line = Fields(data, "a record of groups")
    line.string("row")
    line.string("metric")
    line.whole("seed", least=None)
    for place, group in enumerate(line.items("values")):
        # A group that the metric skipped is empty.
        if not isinstance(group, list) or not all(_number(part) for part in group):
            raise DataError(f"not a record of groups: values[{place}] is {group!r:.40}, and has to be numbers.")


def check_study(header: Mapping[str, Any], path: Path) -> None:
    """A study's study.json. Raises DataError."""
    head = Fields(header, f"the head of a study ({path})")
    _check_named(head)
    for name in head.strings("runs"):
        _check_folder(name, head)
    if "models" in header:
        head.mapping("models")


def check_trust(header: Mapping[str, Any], path: Path) -> None:
    """The trust.json of a study of trust. Raises DataError."""
    head = Fields(header, f"the head of a study of trust ({path})")
    _check_named(head)
    head.mapping("models")
    for key, model in header["models"].items():
        if not isinstance(model, dict):
            raise DataError(f"not {head.what}: the model {key!r:.40} is {model!r:.40}, and has to be an object.")
        Fields(model, f"{head.what}: the model {key!r:.40}").string("name")
    for run in head.objects("runs"):
        check_trust_run(run)
        if not isinstance(header["models"].get(run.data["model"]), dict):
            run.refuse("model", "one of the models")


def check_trust_run(run: Fields) -> None:
    """What a header says of one model on one data set. Raises DataError."""
    for name in ("name", "model", "data", "source"):
        run.string(name)
    _check_folder(run.data["name"], run)
    for part in ("randomisation", "attacks"):
        if run.data.get(part) is None:
            continue
        run.mapping(part)
        asked = Fields(run.data[part], f"{run.what}: {part}")
        asked.whole("texts", most=TEXTS)
        asked.mapping("left_out")
        if part == "randomisation":
            asked.strings("methods")
            asked.strings("orders")
            asked.whole("draws", most=TEXTS)
            asked.whole("blocks", most=TEXTS)
            continue
        asked.wholes("boundary")
        for variant in asked.objects("variants"):
            variant.string("attack")
            variant.string("objective")
            variant.strings("methods")


def check_trainings(header: Mapping[str, Any], path: Path) -> None:
    """The trainings.json of a study of trainings. Raises DataError."""
    head = Fields(header, f"the head of a study of trainings ({path})")
    _check_named(head)
    head.wholes("seeds", least=None)
    head.mapping("gains")
    check_metrics(head)
    for task in head.objects("tasks"):
        task.string("name")
        task.string("base")
        task.strings("also")
        task.mapping("data")
    for row in head.objects("rows"):
        row.string("name")
        row.string("method")
        row.choice("kind", ("plain", "posthoc", "training", "control"))
        row.strings("tasks")
        row.mapping("settings")


def check_training(data: Mapping[str, Any]) -> None:
    """Check the key and the non-numeric fields of a line of trainings.jsonl. Raises DataError."""
    line = Fields(data, "a record")
    for name in ("task", "test", "row", "kind", "method"):
        line.string(name)
    line.whole("seed", least=None)
    line.whole("texts")
    for name in ("settings", "scores", "groups", "history", "explaining"):
        line.mapping(name)


def check_audit(header: Mapping[str, Any], path: Path) -> None:
    """An audit's audit.json. Raises DataError."""
    head = Fields(header, f"the head of an audit ({path})")
    for name in ("model", "data", "of", "unit"):
        head.string(name)
    for name in ("texts", "parameters", "blocks"):
        head.whole(name)
    head.mapping("versions")
    head.mapping("trust")
    check_trust_run(Fields(header["trust"], f"{head.what}: trust"))


def _check_named(head: Fields) -> None:
    head.string("name")
    head.string("digest")
    head.mapping("versions")
    for claim in head.objects("claims") if "claims" in head.data else ():
        claim.string("says")
    if head.data.get("limit") is not None:
        head.whole("limit")


def _check_folder(name: str, of: Fields) -> None:
    """Check that a run's name is a folder name within the study's folder."""
    if not name or name in (".", "..") or set(name) & set("/\\:") or not name.isprintable():
        raise DataError(f"not {of.what}: the run {name!r:.40} is not a folder name.")


def _number(value: object) -> bool:
    """A finite double-precision number, or null; JSON has no NaN."""
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= HIGHEST)


def _told(count: int) -> str:
    return "a number or null" if count == 1 else f"a list of {count} numbers"
