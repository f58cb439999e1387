"""Heat maps of an attention explainer's trained coefficients."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from raison.report.style import phrases
from raison.report.style.colours import level, peak
from raison.report.tables.records import Cell, Part, Table, Text
from raison.studies.kinds.trainings.records import TrainingRuns
from raison.studies.kinds.trainings.tables import places, records_of, rows

_TITLES = {"heads": "heads and layers", "features": "features, averaged by head"}
_READING = (
    "Coefficients after the training as multiples of their start, under the first seed: red grew, blue shrank. Columns "
    "are the attention heads."
)
_MOST = 256
"""Maximum number of layers and heads of a map; a record with more does not come from a training."""
_HIGHEST = 1e9


def coefficients(study: TrainingRuns) -> Iterator[Part]:
    """How to read the heat maps, and the heat maps; nothing if no record has coefficients."""
    tables = list(coefficient_tables(study))
    if tables:
        yield Text(_READING, aside=True)
        yield from tables


def coefficient_tables(study: TrainingRuns) -> Iterator[Table]:
    """For each task and training: heads by layers, next to them the layers; and the features of each head."""
    for place in places(study):
        for row in rows(study, "training"):
            for record in records_of(study, row.name, place)[:1]:
                held = record.history.get("coefficients")
                yield from _maps(held, f"{place.title}: {row.name}") if isinstance(held, Mapping) else ()


def _maps(held: Mapping[str, Any], name: str) -> Iterator[Table]:
    for part, title in _TITLES.items():
        lines = _grid(held.get(part))
        if lines:
            layers = _numbers(held.get("layers")) if part == "heads" else []
            yield _table(f"{name}, {title if layers or part != 'heads' else 'heads'}", lines, layers)


def _table(title: str, lines: Sequence[Sequence[float]], layers: Sequence[float]) -> Table:
    beside = layers if len(layers) == len(lines) else []
    full = [[*line, *beside[number : number + 1]] for number, line in enumerate(lines)]
    largest = peak(value - 1 for line in full for value in line)
    width = max(map(len, lines))
    return Table(
        title,
        ("layer", *map(str, range(1, width + 1)), *(["layer"] if beside else [])),
        tuple(
            (str(number), tuple(Cell(phrases.number(value, 2)) for value in line))
            for number, line in enumerate(full, 1)
        ),
        shades=tuple(tuple(level(value - 1, largest) for value in line) for line in full),
        aside=True,
    )


def _grid(held: object) -> list[list[float]]:
    """Rows of equal length; nothing if a record holds something else."""
    lines = [_numbers(line) for line in held[:_MOST]] if isinstance(held, list) else []
    return lines if lines and lines[0] and len({len(line) for line in lines}) == 1 else []


def _numbers(held: object) -> list[float]:
    if not isinstance(held, list) or len(held) > _MOST:
        return []
    known = [float(value) for value in held if type(value) in (int, float) and abs(value) <= _HIGHEST]
    return known if len(known) == len(held) else []
