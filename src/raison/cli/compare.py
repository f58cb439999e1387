"""raison compare."""

from pathlib import Path
from typing import Annotated

import typer

from raison.cli import options
from raison.core.unit import check_unit


def compare(
    data: options.Data,
    model: options.Model = "demo/sst2",
    methods: options.Methods = "integrated_gradients,kernel_shap,lime,occlusion",
    metrics: options.Metrics = None,
    limit: options.Limit = None,
    text_column: options.TextColumn = None,
    pair_column: options.PairColumn = None,
    delimiter: options.Delimiter = None,
    split: options.Split = "test",
    unit: options.Unit = "word",
    target: options.TargetOption = None,
    of: options.Of = None,
    removal: options.RemovalOption = None,
    seed: options.Seeds = "0",
    select: options.Select = "",
    truncate: options.Truncate = False,
    precision: options.Precision = "float32",
    skip_bad: options.SkipBad = False,
    prompt: options.Prompt = None,
    explain_prompt: options.ExplainPrompt = False,
    calibrate: options.Calibrate = False,
    device: options.Device = None,
    dtype: options.Dtype = None,
    out: Annotated[Path | None, typer.Option(help="Keep every explanation and score here; run again to go on.")] = None,
    shard: options.ShardOption = None,
    json: options.Json = False,
) -> None:
    """Compare methods on a data set, always beside random scores."""
    from raison.cli.output import show
    from raison.cli.rows import Source, readable_texts
    from raison.judging.compare import compare as run

    # Everything that can be wrong with the request is said before the model is loaded.
    chosen, judges = options.asked_for(methods, metrics, select)
    seeds, known = options.seeds_of(seed), check_unit(unit)
    loaded = options.load_classifier(model, (prompt, explain_prompt, calibrate), device, dtype)
    found = readable_texts(loaded, Source(data, text_column, pair_column, split, limit, skip_bad, truncate, delimiter))
    comparison = run(
        loaded,
        found.texts,
        chosen if methods != "all" else options.able_methods(loaded, found.texts, (known, truncate)),
        judges,
        unit=known,
        target=options.target_of(target),
        of=of,
        removal=removal,
        seed=seeds,
        truncate=truncate,
        precision=precision,
        rationales=found.rationales,
        select=options.split_calls(select),
        out=out,
        data=found.name,
        shard=options.sharing_of(shard, 1).shard,
    )
    typer.echo(comparison.to_json(indent=1)) if json else show(comparison)
