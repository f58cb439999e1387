"""Methods side by side on the same texts: explain and evaluate, always with a random row, resumable."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from raison._version import __version__
from raison.core.errors import DataError, InputError
from raison.core.explanation import Explanation
from raison.core.method import Method
from raison.core.metric import Metric
from raison.core.model import LanguageModel
from raison.core.registry import label_of
from raison.core.results import Comparison, Scores
from raison.core.target import TargetSpec
from raison.core.unit import Granularity, Text
from raison.data.records import RecordStore, write_whole
from raison.evaluate import DEFAULT_METRICS, create_metrics, measure, summarise
from raison.explain import Settings, check, prepare, run
from raison.methods import CATALOGUE
from raison.progress import Advance, progress_bar

DEFAULT_METHODS = ("integrated_gradients", "kernel_shap", "lime", "occlusion")

CHUNK = 16
"""Texts that are explained, judged and written together. Fixed, so that a resumed run repeats the same batches."""

Row = tuple[Explanation, list[float]]


def compare(
    model: LanguageModel,
    texts: Sequence[Text],
    methods: Sequence[str | Method] = DEFAULT_METHODS,
    metrics: Sequence[str | Metric] = DEFAULT_METRICS,
    *,
    unit: Granularity = "word",
    target: TargetSpec = None,
    of: str = "probability",
    removal: str | None = None,
    seed: int = 0,
    truncate: bool = False,
    out: str | Path | None = None,
    data: str = "texts",
    progress: bool | Advance = True,
) -> Comparison:
    """Explain every text with every method and judge the explanations by every metric.

    A row of `random` scores is always there. Each prediction and each perturbed text is computed once for all
    methods and metrics together.

    Args:
        out: a folder that keeps every explanation and score; a run that was interrupted goes on from there, and gives
            the same table as one that was not. It must be empty, or hold the same run.
        data: what the texts are called in the table.
        progress: a progress bar on stderr, or a function that is told of finished texts.
        The other arguments are those of `explain` and `evaluate`.

    Raises:
        InputError, UnknownNameError, UnsupportedError: before anything runs.
        DataError: a folder that holds another run, or no space left (what was written stays usable).
    """
    settings = Settings(unit, target, of, removal, seed, truncate)
    chosen = _with_random([CATALOGUE.create(method) for method in methods])
    judges = create_metrics(metrics)
    if not texts or isinstance(texts, str):
        raise InputError("texts to compare on are a list of at least one text.")
    # Before hours of work, and before a folder is touched: whatever cannot be done is refused now.
    prepare(model, texts[:1], settings)
    for method in chosen:
        check(model, method)
    _check_texts(model, texts, settings)
    labels = [label_of(method) for method in chosen]
    header = _header(model, texts, labels, judges, settings)
    records = None if out is None else _open(Path(out), header)
    done = {} if records is None else _parsed(records.read().records)
    with progress_bar("compare", len(texts), progress) as advance:
        for start in range(0, len(texts), CHUNK):
            numbers = range(start, min(start + CHUNK, len(texts)))
            if not all((label, number) in done for label in labels for number in numbers):
                rows = _chunk(model, [texts[i] for i in numbers], chosen, judges, settings)
                lines = _lines(labels, numbers, rows)
                if records is not None:
                    records.append(lines)
                done.update(_parsed(lines))
            advance(len(numbers))
    return _table(header, labels, judges, done, data)


def _check_texts(model: LanguageModel, texts: Sequence[Text], settings: Settings) -> None:
    """One at a time: a large data set's tokens need not be in memory together."""
    for number, text in enumerate(texts, start=1):
        try:
            model.encode([text], settings.unit, settings.truncate)
        except InputError as error:
            raise type(error)(f"text {number} of {len(texts)}: {error}") from None


def _with_random(methods: list[Method]) -> list[Method]:
    random = CATALOGUE.create("random")
    found = methods if random in methods else [*methods, random]
    labels = [label_of(method) for method in found]
    for label in labels:
        if labels.count(label) > 1:
            raise InputError(f"the method {label} is named twice.")
    return found


def _chunk(
    model: LanguageModel, texts: list[Text], methods: list[Method], metrics: list[Metric], settings: Settings
) -> list[list[Row]]:
    batch = prepare(model, texts, settings)
    explanations = [run(batch, method) for method in methods]
    flat = [explanation for of_method in explanations for explanation in of_method]
    scores = measure(batch, flat, metrics)
    return [
        list(zip(of_method, scores[i * len(texts) : (i + 1) * len(texts)], strict=True))
        for i, of_method in enumerate(explanations)
    ]


def _header(
    model: LanguageModel, texts: Sequence[Text], labels: list[str], metrics: list[Metric], settings: Settings
) -> dict[str, object]:
    """What makes two runs the same run."""
    return {
        "raison": __version__,
        "model": model.name,
        "texts": len(texts),
        "texts_sha256": hashlib.sha256(json.dumps(list(texts), ensure_ascii=False).encode()).hexdigest(),
        "methods": labels,
        "metrics": [label_of(metric) for metric in metrics],
        "settings": json.loads(json.dumps(asdict(settings))),
    }


def _open(folder: Path, header: dict[str, object]) -> RecordStore:
    """The folder's records; refuses a folder that holds another run."""
    path = folder / "run.json"
    if path.exists():
        known = json.loads(path.read_text(encoding="utf-8"))
        differing = sorted(key for key in header.keys() | known.keys() if header.get(key) != known.get(key))
        if differing:
            raise DataError(
                f"{folder} holds another run (it differs in {', '.join(differing)}): choose another folder for --out, "
                "or delete this one."
            )
    else:
        write_whole(path, json.dumps(header, ensure_ascii=False, indent=1) + "\n")
    return RecordStore(folder / "records.jsonl")


def _lines(labels: list[str], numbers: Sequence[int], rows: list[list[Row]]) -> list[dict[str, object]]:
    return [
        {"method": label, "text": number, "explanation": explanation.to_dict(), "scores": scores}
        for label, of_method in zip(labels, rows, strict=True)
        for number, (explanation, scores) in zip(numbers, of_method, strict=True)
    ]


def _parsed(lines: Sequence[dict[str, Any]]) -> dict[tuple[str, int], Row]:
    return {
        (line["method"], line["text"]): (Explanation.from_dict(line["explanation"]), line["scores"]) for line in lines
    }


def _table(
    header: dict[str, Any], labels: list[str], metrics: list[Metric], done: dict[tuple[str, int], Row], data: str
) -> Comparison:
    rows: list[Scores] = []
    for label in labels:
        found = [done[label, number] for number in range(header["texts"])]
        rows.append(summarise(label, [row[0] for row in found], metrics, [row[1] for row in found]))
    settings = header["settings"]
    return Comparison(
        rows=tuple(rows),
        model=header["model"],
        data=data,
        texts=header["texts"],
        unit=settings["unit"],
        of=settings["of"],
        seed=settings["seed"],
        settings=settings,
    )
