"""raison cite."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from raison.cli import options
from raison.cli.files import InFiles, refuse_beside_data, write_page
from raison.cli.files import show as show_files
from raison.core.errors import DataError, InputError, RaisonError
from raison.core.settings.fields import Setting
from raison.core.settings.reading import dump
from raison.explaining.settings import DRAWS
from raison.studies.entries import StudyModel

if TYPE_CHECKING:
    from raison.data.question_rows import QuestionRow
    from raison.judging.citing import CiteEstimate
    from raison.runs.files.folder import WrittenShards

Result = TypeVar("Result")
Question = Annotated[str | None, typer.Argument(help="The question; leave it out with --data.")]
Sources = Annotated[
    list[Path] | None,
    typer.Option("--source", "-s", help="A text file that is one source, named after the file. May be repeated."),
]
Data = Annotated[
    list[str] | None,
    typer.Option(
        "--data",
        "-d",
        help=(
            "A jsonl or parquet file with one question per row, or OpenInference traces; with --out, may be repeated "
            "or be a pattern."
        ),
    ),
]
_OF_TEXTS = ("text_column", "pair_column", "contrast_column", "output_column", "label_column")
QuestionFiles = Annotated[InFiles, options.But(without=(*_OF_TEXTS, "delimiter", "split", "encoding"))]
Answer = Annotated[str | None, typer.Option(help="The answer to explain; the model's own by default.")]


@dataclass(frozen=True, slots=True)
class Citing:
    """The options of a command that cites; see raison.cite."""

    entry: StudyModel
    template: Annotated[str | None, Setting("plain, chat, a TOML file, or a text with {sources} and {question}.")] = (
        None
    )
    method: Annotated[str, Setting("Name or call: context_cite(ablations=32).", options=("--method", "-M"))] = "auto"
    within: Annotated[str, Setting("sentence also scores sentences of the sources; source does not.")] = "sentence"
    removal: Annotated[str, Setting("What replaces removed text: delete, ellipsis, ...")] = "delete"
    seed: Annotated[int, Setting("Seed of random methods and random text.")] = 0
    max_new_tokens: Annotated[int | None, Setting("Maximum length of the model's own answer; 100 by default.")] = None
    draws: Annotated[
        int, Setting("Number of random texts that each source is compared with; 0: no lights.", least=0)
    ] = DRAWS

    def check(self) -> None:
        """Refuse settings that cannot be before a model is loaded. Raises InputError, DataError."""
        from raison.explaining.sources.citation_settings import CitationSettings

        CitationSettings.from_options(**self.options())

    def options(self) -> dict[str, Any]:
        """The keyword arguments of raison.cite."""
        names = ("template", "method", "within", "removal", "seed", "max_new_tokens", "draws")
        return {name: getattr(self, name) for name in names}


@options.from_records
def cite(
    citing: Annotated[
        Citing,
        options.But(without=("prompt", *options.TASKS), defaults={"name": "demo/smollm2-generation"}),
    ],
    files: QuestionFiles,
    question: Question = None,
    source: Sources = None,
    data: Data = None,
    answer: Answer = None,
    html: options.Html = None,
    estimate: Annotated[bool, typer.Option("--estimate", help="Only estimate passes, time and memory.")] = False,
    json: options.Json = False,
) -> None:
    """Show which sources each statement of a language model's answer depends on; with --out, for whole files."""
    if data and files.files.out is not None:
        given = {"QUESTION": question, "--source": source, "--answer": answer, "--html": html}
        refuse_beside_data(given | {"--estimate": estimate or None})
        show_files(_cited_files(data, citing, files), json)
        return
    files.refuse_without_data("give --data and --out DIR")
    file = _one_file(data)
    rows = _rows(question, source or [], file, answer)
    from raison.explaining.cite import cite as run
    from raison.judging.citing import estimate_cite
    from raison.report.explanations.citations_page import page
    from raison.report.pages.showing import show
    from raison.studies.plans import load_entry

    citing.check()
    writer = load_entry(citing.entry)
    if estimate:
        _tell_cost([_of_row(estimate_cite, writer, row, citing, file) for row in rows], json)
        return
    citations = [_of_row(run, writer, row, citing, file) for row in rows]
    if html is not None:
        write_page(html, page(citations))
    if json:
        typer.echo(dump([c.to_dict() for c in citations], 1) if file is not None else citations[0].to_json(indent=1))
    else:
        for c in citations:
            show(c)


def _cited_files(data: Sequence[str], citing: Citing, files: InFiles) -> "WrittenShards":
    """The citations for every question of files, in a folder."""
    from raison.explaining.files.entry_points import cite_file
    from raison.studies.plans import load_entry

    assert files.files.out is not None
    citing.check()
    load: partial[Any] = partial(load_entry, citing.entry)
    return cite_file(
        load(),
        list(data),
        files.files.out,
        reading=files.reading,
        format=files.files.format,
        budget_hours=files.files.budget_hours,
        sharing=files.sharing,
        load=load,
        **citing.options(),
    )


def _one_file(data: list[str] | None) -> Path | None:
    """The only file, whose questions are answered directly. Raises InputError for several."""
    if data and len(data) > 1:
        raise InputError("several files need a folder for the results: give --out DIR.")
    return Path(data[0]) if data else None


def _rows(question: str | None, sources: list[Path], data: Path | None, answer: str | None) -> "list[QuestionRow]":
    """The questions. Raises InputError or DataError."""
    from raison.data.question_rows import QuestionRow
    from raison.data.questions import read_questions

    if data is not None:
        if question is not None or sources or answer is not None:
            raise InputError("--data contains the questions, sources and answers: leave the other arguments out.")
        return read_questions(data)
    if question is None:
        raise InputError("no question given: pass it as the argument, or a file with --data.")
    texts: dict[str, str] = {}
    for path in sources:
        name = path.stem if path.stem not in texts else path.name
        if name in texts:
            raise InputError(f"two sources are named '{name}': rename a file.")
        try:
            texts[name] = path.read_text(encoding="utf-8-sig").strip()
        except UnicodeDecodeError:
            raise DataError(f"{path} is not UTF-8 text: convert it first (iconv).") from None
        except OSError as error:
            raise DataError(f"cannot read {path}: {error.strerror or error}.") from None
    return [QuestionRow(1, question, texts, answer)]


def _of_row(run: Callable[..., Result], writer: Any, row: "QuestionRow", citing: Citing, data: Path | None) -> Result:
    try:
        settings = citing.options() | ({"max_new_tokens": None} if row.answer is not None and data is not None else {})
        return run(writer, row.question, row.sources, answer=row.answer, **settings)
    except RaisonError as error:
        if data is None:
            raise
        raise DataError(f"line {row.number} of {data}: {error}") from None


def _tell_cost(estimates: "list[CiteEstimate]", json: bool) -> None:
    """Print the cost of each question and the total time."""
    if json:
        typer.echo(dump([asdict(one) for one in estimates], 1) if len(estimates) > 1 else dump(asdict(estimates[0]), 1))
        return
    for one in estimates:
        typer.echo(one.text())
    if len(estimates) > 1:
        typer.echo(f"about {sum(one.seconds for one in estimates):,.0f} s for all {len(estimates)} questions")
