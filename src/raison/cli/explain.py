"""raison explain."""

from pathlib import Path
from typing import Annotated, Any

import typer

from raison.cli import options
from raison.core.errors import InputError
from raison.core.results.explanation import Explanation
from raison.core.results.generation import GenerationExplanation
from raison.explaining.settings import Settings

Input = Annotated[str, typer.Argument(help="The text, or a language model's prompt; - for standard input.")]
Method = Annotated[
    str, typer.Option("--method", "-M", help="Name or call: kernel_shap(samples=512). auto chooses, and says why.")
]
Budget = Annotated[int | None, typer.Option(min=2, help="Passes that auto may take; 100 by default.")]
Pair = Annotated[str | None, typer.Option(help="Second text of a pair, such as a hypothesis.")]
Document = Annotated[
    list[str] | None,
    typer.Option(
        help="A document that is ranked for the text, a query; give it several times. --target 0,1: why the "
        "first comes before the second; without it, the ranking's first two."
    ),
]
Output = Annotated[
    str | None, typer.Option(help="Explain this output of a language model, including its leading space.")
]
NewTokens = Annotated[
    int | None, typer.Option(min=1, help="Maximum length of a generated output in tokens; 20 by default.")
]
Contrast = Annotated[
    list[str] | None, typer.Option(help="Explain against this word: one for all output tokens, or one for each.")
]
Earlier = Annotated[bool, typer.Option("--earlier", help="Also score earlier output tokens.")]
Chat = Annotated[bool, typer.Option("--chat", help="Use the model's chat template.")]
Select = Annotated[
    str | None,
    typer.Option(help="Metric that selects one of the method's candidate maps, such as comprehensiveness."),
]
Threshold = Annotated[
    float | None, typer.Option(help="With --target each: explain labels from this probability on; 0.5 by default.")
]
Html = Annotated[Path | None, typer.Option(help="Also write a standalone page to this file.")]


@options.from_records
def explain(
    text: Input,
    entry: options.Model,
    settings: Settings,
    method: Method = "auto",
    budget: Budget = None,
    pair: Pair = None,
    document: Document = None,
    units: options.Units = None,
    language: options.Language = None,
    output: Output = None,
    max_new_tokens: NewTokens = None,
    contrast: Contrast = None,
    earlier: Earlier = False,
    chat: Chat = False,
    select: Select = None,
    html: Html = None,
    threshold: Threshold = None,
    json: options.Json = False,
) -> None:
    """Show which parts of a text made the model predict or write what it did."""
    from raison.cli.output import show
    from raison.explaining.explain import explain as run
    from raison.jobs.disk import write_whole
    from raison.studies.plans import load_entry

    # Only the model's files tell whether a prediction or an output is explained.
    sides: Any = units
    asked: Any = _input(text, pair, chat) if not document else (text, document)
    explanation: Explanation | GenerationExplanation | list[Explanation] = run(
        load_entry(entry),
        asked,
        method,
        unit=settings.unit,
        units=sides,
        language=language,
        target=settings.target,
        of=settings.of,
        removal=settings.removal,
        seed=settings.seed,
        truncate=settings.truncate,
        precision=settings.precision,
        select=select,
        budget=budget,
        output=output,
        max_new_tokens=max_new_tokens,
        contrast=contrast[0] if contrast and len(contrast) == 1 else contrast or None,
        earlier=earlier,
        threshold=threshold,
    )
    if isinstance(explanation, list):
        _tell_each(explanation, html, json)
        return
    if html is not None:
        write_whole(html, explanation.to_html())
        typer.echo(f"raison: wrote the page to {html}", err=True)
    if json:
        typer.echo(explanation.to_json(indent=1))
    else:
        show(explanation)


def _tell_each(explanations: list[Explanation], html: Path | None, json: bool) -> None:
    """One explanation for each target of the text, or one line where there is none."""
    from raison.report.pages.saving import json_of, save
    from raison.report.pages.showing import show

    if not explanations:
        typer.echo("raison: no prediction in the text reaches the threshold (--threshold)", err=True)
    elif html is not None:
        typer.echo(f"raison: wrote the page to {save(explanations, html)}", err=True)
    if json:
        typer.echo(json_of(explanations))
    elif explanations:
        show(explanations)


def _input(text: str, pair: str | None, chat: bool) -> str | tuple[str, str] | list[dict[str, str]]:
    """The input to explain: a text, a pair, or a chat of one message."""
    if chat and pair is not None:
        raise InputError("--chat and --pair exclude each other: a chat is one prompt.")
    if text == "-":
        text = _standard_input()
    if chat:
        return [{"role": "user", "content": text}]
    return text if pair is None else (text, pair)


def _standard_input() -> str:
    try:
        return typer.get_text_stream("stdin").read()
    except UnicodeDecodeError as error:
        raise InputError(f"standard input is not UTF-8 text ({error.reason}): convert it first (iconv).") from None
