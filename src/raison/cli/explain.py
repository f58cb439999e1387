"""raison explain."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from raison.cli import options
from raison.cli.files import InFiles, refuse_beside_data, write_page
from raison.cli.files import show as show_files
from raison.cli.readable_texts import tell_columns
from raison.core.errors import InputError
from raison.core.results.explanation import Explanation
from raison.core.results.generation import GenerationExplanation
from raison.core.settings.fields import Setting
from raison.explaining.settings import Settings
from raison.studies.entries import StudyModel

if TYPE_CHECKING:
    from raison.runs.files.folder import WrittenShards

Explanations = Explanation | GenerationExplanation | list[Explanation]
Input = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="TEXT",
        help="The text, or a language model's prompt; - for standard input. With --data, further files.",
        show_default=False,
    ),
]
Data = Annotated[
    list[str] | None,
    typer.Option(
        "--data",
        "-d",
        help="Explain every row of FILE...: csv, tsv, txt, jsonl, parquet, a pattern, a data set by name or Hub id.",
    ),
]
Pair = Annotated[str | None, typer.Option(help="Second text of a pair, such as a hypothesis.")]
Document = Annotated[
    list[str] | None,
    typer.Option(
        help=(
            "A document to rank for the text, which is then a query; repeat it for each document. --target 0,1: why "
            "the first comes before the second; without it, the top two of the ranking."
        )
    ),
]
Contrast = Annotated[
    list[str] | None, typer.Option(help="Explain output tokens against this word: one for all, or one for each.")
]


@dataclass(frozen=True, slots=True)
class WritingOptions:
    """Options for generative language models."""

    output: Annotated[str | None, Setting("Explain this output of a language model, including its leading space.")] = (
        None
    )
    max_new_tokens: Annotated[
        int | None, Setting("Maximum length of a generated output in tokens; 20 by default.", least=1)
    ] = None
    earlier: Annotated[bool, Setting("Also score earlier output tokens.")] = False
    chat: Annotated[bool, Setting("Use the model's chat template.")] = False


@dataclass(frozen=True, slots=True)
class Explaining:
    """The options of a command that explains; see raison.explain."""

    settings: Settings
    texts: options.TextOptions
    writing: WritingOptions
    method: Annotated[
        str,
        Setting(
            "Name or call: kernel_shap(samples=512). auto chooses a method and says why.", options=("--method", "-M")
        ),
    ] = "auto"
    budget: Annotated[int | None, Setting("Maximum number of passes for auto; 100 by default.", least=2)] = None
    select: Annotated[
        str | None, Setting("Metric that selects one of the method's candidate maps, such as comprehensiveness.")
    ] = None
    threshold: options.Threshold = None

    def check(self) -> None:
        """Refuse names that are unknown before a model is loaded. Raises InputError."""
        from raison.explaining.explain import within_budget
        from raison.metrics import CATALOGUE as METRICS

        within_budget(self.method, self.budget)
        if self.select is not None:
            METRICS.create(self.select)

    def options(self) -> dict[str, Any]:
        """The arguments that are the same for one text and for files."""
        return {
            **self.settings.keywords(),
            "units": self.texts.units,
            "language": self.texts.language,
            "select": self.select,
            "budget": self.budget,
            "threshold": self.threshold,
        }


@options.from_records
def explain(
    entry: options.Model,
    how: Explaining,
    files: InFiles,
    text: Input = None,
    data: Data = None,
    pair: Pair = None,
    document: Document = None,
    contrast: Contrast = None,
    html: options.Html = None,
    json: options.Json = False,
) -> None:
    """Show which parts of a text made the model predict or write what it did; with --data, of every row of files."""
    if data:
        refuse_beside_data({"--pair": pair, "--document": document, "--html": html})
        show_files(_explained_files((*data, *_files(text or ())), entry, how, _contrast(contrast), files), json)
        return
    files.refuse_without_data()
    given: Any = _input(_single(text), pair, document, how.writing.chat)
    from raison.studies.plans import load_entry

    how.check()
    model = load_entry(entry)
    _tell(_explained(model, given, how, _contrast(contrast)), html, json)


def _explained(model: Any, given: Any, how: Explaining, contrast: str | list[str] | None) -> Explanations:
    # Only the model's files decide whether a prediction or an output is explained, so no overload can be chosen here.
    from raison.explaining.explain import explain as run

    told: Explanations = run(
        model,
        given,
        how.method,
        **how.options(),
        output=how.writing.output,
        max_new_tokens=how.writing.max_new_tokens,
        contrast=contrast,
        earlier=how.writing.earlier,
    )
    return told


def _explained_files(
    data: Sequence[str], entry: StudyModel, how: Explaining, contrast: str | list[str] | None, files: InFiles
) -> "WrittenShards":
    """The explanations of every row of files, in a folder."""
    if files.files.out is None:
        raise InputError("--data needs a folder for the explanations: give --out DIR.")
    from raison.data.streams import columns_taken, sources_of
    from raison.explaining.files.entry_points import explain_file
    from raison.explaining.generation import Writing
    from raison.studies.plans import load_entry

    sources = sources_of(data)
    tell_columns(sources[0], columns_taken(sources[0], files.reading))
    how.check()
    return explain_file(
        load_entry(entry),
        sources,
        files.files.out,
        how.method,
        reading=files.reading,
        **how.options(),
        writing=Writing(how.writing.output, how.writing.max_new_tokens, contrast, how.writing.earlier),
        chat=how.writing.chat,
        format=files.files.format,
        budget_hours=files.files.budget_hours,
        sharing=files.sharing,
        load=partial(load_entry, entry),
    )


def _tell(explained: Explanations, html: Path | None, json: bool) -> None:
    """Print an explanation, or one for each target of the text; one line if there is none."""
    from raison.report.pages.saving import content_of, json_of
    from raison.report.pages.showing import show

    if explained == []:
        typer.echo("raison: no prediction in the text reaches the threshold (--threshold)", err=True)
    elif html is not None:
        write_page(html, content_of(explained, ".html"))
    if json:
        typer.echo(json_of(explained) if isinstance(explained, list) else explained.to_json(indent=1))
    elif explained != []:
        show(explained)


def _contrast(words: list[str] | None) -> str | list[str] | None:
    """One for all output tokens, or one for each."""
    return words[0] if words and len(words) == 1 else words or None


def _files(names: Sequence[str]) -> Sequence[str]:
    """Further files, which a shell writes for a pattern. Raises InputError for a text."""
    for name in names:
        if any(letter.isspace() for letter in name) and not Path(name).exists():
            raise InputError(f"{name!r:.80} is a text, and --data explains the rows of files: leave one of them out.")
    return names


def _single(text: list[str] | None) -> str:
    """The one text that is explained without files. Raises InputError."""
    if not text:
        raise InputError("no text given: pass one in quotes, - for standard input, or files with --data.")
    if len(text) > 1:
        raise InputError(
            f"there are {len(text)} texts: quote one, give a pair's second one with --pair, or files with --data."
        )
    return text[0]


def _input(text: str, pair: str | None, documents: Sequence[str] | None, chat: bool) -> Any:
    """The input to explain: a text, a pair, a query with documents, or a chat of one message. Raises InputError."""
    if chat and pair is not None:
        raise InputError("--chat and --pair exclude each other: a chat is one prompt.")
    for name, is_given in (("--pair", pair is not None), ("--chat", chat)):
        if documents and is_given:
            raise InputError(f"--document and {name} exclude each other: documents are ranked for a query.")
    if text == "-":
        text = _standard_input()
    if chat:
        return [{"role": "user", "content": text}]
    if documents:
        return text, list(documents)
    return text if pair is None else (text, pair)


def _standard_input() -> str:
    try:
        text: str = typer.get_text_stream("stdin").read()
    except UnicodeDecodeError as error:
        raise InputError(f"standard input is not UTF-8 text ({error.reason}): convert it first (iconv).") from None
    # echo and most editors end a text with a line end, which is not a part of it.
    return text.removesuffix("\n").removesuffix("\r")
