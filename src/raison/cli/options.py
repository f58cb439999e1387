"""Options that several commands share, so that they read the same everywhere."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from raison.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from raison.core.model import LanguageModel
    from raison.core.registry import Catalogue
    from raison.core.target import TargetSpec
    from raison.core.unit import Granularity, Text
    from raison.studies.runner import Sharing

Model = Annotated[str, typer.Option("--model", "-m", help="Demo name, Hub id or folder of a model.")]
Device = Annotated[str | None, typer.Option(help="Where to put the model, such as cpu or cuda.")]
Dtype = Annotated[str | None, typer.Option(help="float32, bfloat16 or float16; the model's own by default.")]
Prompt = Annotated[
    str | None, typer.Option("--prompt", help="Makes a language model a classifier: a shipped prompt or a TOML file.")
]
ExplainPrompt = Annotated[bool, typer.Option("--explain-prompt", help="Score the prompt's sentences and shots, too.")]
Calibrate = Annotated[
    bool, typer.Option("--calibrate", help="Divide by the label words' probabilities on inputs without content.")
]
Unit = Annotated[str, typer.Option("--unit", "-u", help="What receives a score: token, word or sentence.")]
Of = Annotated[
    str | None,
    typer.Option(
        help="What is explained: probability (default), logit, log_odds, margin, log_probability; a model's one number "
        "is its logit, and the default there."
    ),
]
TargetOption = Annotated[
    str | None, typer.Option("--target", help="Label to explain; two with a comma: this,not that. Default: predicted.")
]
RemovalOption = Annotated[
    str | None, typer.Option("--removal", help="What an absent unit becomes: mask, ellipsis, unk, pad, delete.")
]
Seed = Annotated[int, typer.Option(help="Seed of random methods.")]
Seeds = Annotated[str, typer.Option(help="Seed of random methods; several with commas are averaged: 0,1,2.")]
Select = Annotated[
    str, typer.Option(help="Metrics that choose each text's map among those that a method offers, beside a control.")
]
Precision = Annotated[
    str,
    typer.Option(help="Of perturbed texts: float32 (the model's own) or bfloat16, often faster."),
]
Truncate = Annotated[bool, typer.Option("--truncate", help="Explain the beginning of a text that is too long.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table or coloured text.")]
Methods = Annotated[
    str, typer.Option("--methods", help='Names or calls with commas between: "lime,kernel_shap(samples=64)"; or all.')
]
Metrics = Annotated[
    str | None,
    typer.Option(
        "--metrics",
        help="Names or calls with commas between, or all; by default comprehensiveness, sufficiency, their AOPC and "
        "log_odds.",
    ),
]
Data = Annotated[
    str,
    typer.Option(
        "--data",
        "-d",
        help="A tsv, csv, jsonl or parquet file, a split of a named data set (sst2:dev), or a data set's Hub id. "
        "What people marked: a jsonl column rationale, a list of [start, end] in characters.",
    ),
]
TextColumn = Annotated[str | None, typer.Option(help="Column of the text: a name, or a number counted from 0.")]
PairColumn = Annotated[str | None, typer.Option(help="Column of the second text of a pair.")]
Delimiter = Annotated[
    str | None,
    typer.Option(help="What separates the columns of a csv file: a character, tab or none; found where it can be."),
]
Split = Annotated[str, typer.Option(help="Split of a data set from the Hub.")]
Limit = Annotated[int | None, typer.Option(min=1, help="Use the first so many rows.")]
Plots = Annotated[bool, typer.Option("--plots/--no-plots", help="Draw plots, where matplotlib is installed.")]
ShardOption = Annotated[
    str | None, typer.Option("--shard", help="1/2 does one half of the work, and a process with 2/2 the other.")
]
Workers = Annotated[
    int, typer.Option("--workers", min=1, help="Start so many processes, which share the work and the processor.")
]
EvenAtChance = Annotated[
    bool, typer.Option("--even-at-chance", help="Go on with a model that has hardly learned its task.")
]
WholeText = Annotated[str | None, typer.Option("--text", help="The text's column; title+description joins two.")]
SkipBad = Annotated[bool, typer.Option("--skip-bad", help="Go on without rows that cannot be read, and name them.")]


def load_classifier(
    model: str, use: tuple[str | None, bool, bool], device: str | None, dtype: str | None
) -> "LanguageModel":
    """A classifier by name; `use` holds the options prompt, explain_prompt and calibrate."""
    from raison.models.loading.load import as_classifier, load

    prompt, whole, calibrate = use
    return as_classifier(
        load(
            model,
            prompt=prompt,
            explained="prompt" if whole else "input",
            calibrate=calibrate,
            device=device,
            dtype=dtype,
        )
    )


def target_of(option: str | None) -> "TargetSpec":
    """A label, a class number, or a pair of these from the command line."""
    if option is None:
        return None
    parts = [int(part) if part.strip().isdigit() else part.strip() for part in option.split(",")]
    return (parts[0], parts[1]) if len(parts) == 2 else option if len(parts) > 2 else parts[0]


def seeds_of(option: str) -> list[int]:
    """Numbers with commas between."""
    try:
        return [int(part) for part in option.split(",")]
    except ValueError:
        raise InputError(f"--seed takes whole numbers with commas between, such as 0,1,2; got '{option}'.") from None


def named_in(option: str, catalogue: "Catalogue[Any]") -> list[str]:
    """Names or calls with commas between, or all. Raises InputError for one that cannot be made."""
    specs = list(catalogue.names) if option == "all" else split_calls(option)
    for spec in specs:
        catalogue.create(spec)
    return specs


def asked_for(methods: str, metrics: str | None, select: str = "") -> tuple[list[str], list[str] | None]:
    """Methods and metrics by name, None for the usual metrics. InputError for one that cannot be made."""
    from raison.methods import CATALOGUE as METHODS
    from raison.metrics import CATALOGUE as METRICS

    named_in(select, METRICS)
    return named_in(methods, METHODS), None if metrics is None else named_in(metrics, METRICS)


def able_methods(model: "LanguageModel", texts: "Sequence[Text]", how: tuple["Granularity", bool]) -> list[str]:
    """All methods that can explain the texts in these units, cut if need be; the others are named on stderr."""
    from raison.core.registry import label_of
    from raison.judging.compare import allowed
    from raison.methods import CATALOGUE

    longest = max(model.encode([text], *how).unit_counts[0] for text in texts)
    able, reasons = allowed(model, [CATALOGUE.create(name) for name in CATALOGUE.names], longest)
    for label, reason in reasons.items():
        typer.echo(f"left out: {label}: {reason}", err=True)
    return [label_of(method) for method in able]


def split_calls(option: str) -> list[str]:
    """Split at the commas that are outside brackets and quotes."""
    parts, depth, quote = [""], 0, ""
    for character in option:
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'":
            quote = character
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth == 0 and not quote:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]


def sharing_of(shard: str | None, workers: int) -> "Sharing":
    """How the work is shared. Raises InputError."""
    from raison.jobs.engine import shard_of
    from raison.studies.runner import Sharing

    if shard is not None and workers > 1:
        raise InputError("--shard is one process's share and --workers starts several: give one of them.")
    return Sharing(shard_of(shard), workers)
