"""Options of the command line: made from the fields of records of settings, or shared by several commands."""

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin

import typer
from typer.models import ArgumentInfo, OptionInfo

from raison.core.errors import InputError
from raison.core.inputs.unit import Side
from raison.core.results.printable import printable
from raison.core.settings.fields import REQUIRED, Field, Setting, fields_of, mistakes_in, refuse
from raison.studies.entries import StudyModel

if TYPE_CHECKING:
    from raison.core.inputs.parts import Given
    from raison.core.model import LanguageModel
    from raison.core.registry import Catalogue
    from raison.explaining.answers import Answers
    from raison.explaining.settings import ComparisonSettings, Settings
    from raison.models.adapters.writing.writer import Writer

ALL = "all"
TASKS = ("explained", "calibrate", "similarity", "pooling", "aggregation")
"""Fields of a model that apply to some tasks only."""
CHOOSING = "auto"
"""The pseudo-method that resolves to another method for each text."""

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table or coloured text.")]


def _page(html: Path | None) -> Path | None:
    """A page's name; InputError for one with the ending of another kind of file."""
    if html is not None and html.suffix and html.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"--html writes a page, and {str(html)!r:.200} is no name for one: end it in .html.")
    return html


Html = Annotated[Path | None, typer.Option(help="Also write a standalone page to this file.", callback=_page)]
Threshold = Annotated[
    float | None,
    Setting(
        "With --target each: explain predictions with at least this probability; by default labels from 0.5 on, and "
        "all entities or masked words."
    ),
]
Plots = Annotated[bool, typer.Option("--plots/--no-plots", help="Draw plots, if matplotlib is installed.")]


@dataclass(frozen=True, slots=True)
class But:
    """In `Annotated[Record, But(without=("target",))]`: exceptions for a record's fields in one command.

    These are fields that are not options, other defaults, and the field that is the command's argument.
    """

    without: tuple[str, ...] = ()
    defaults: Mapping[str, object] = field(default_factory=dict)
    argument: str = ""


Model = Annotated[StudyModel, But(defaults={"name": "demo/sst2"})]


@dataclass(frozen=True, slots=True)
class _Asked:
    """A record that is built from options: its fields that are options, and the records that are its other fields."""

    kind: type
    fields: list[Field]
    parts: "dict[str, _Asked]"

    @property
    def options(self) -> list[Field]:
        """The fields of the record and of the records in it."""
        return [*(one for part in self.parts.values() for one in part.options), *self.fields]


def from_records(command: Callable[..., None]) -> Callable[..., None]:
    """The command with an option for each Setting of its record parameters; it receives the records.

    typer and click only support parameters of functions, so the fields of a record, and of records in it, become
    parameters.
    """
    parameters: list[inspect.Parameter] = []
    records: dict[str, _Asked] = {}
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        hint = parameter.annotation
        kind, *extras = get_args(hint) if get_origin(hint) is Annotated else (hint,)
        if is_dataclass(kind) and isinstance(kind, type):
            buts = [extra for extra in extras if isinstance(extra, But)]
            asked = records[parameter.name] = _asked(kind, buts)
            parameters += (_option(one, any(but.argument == one.name for but in buts)) for one in asked.options)
        else:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))

    @functools.wraps(command)
    def run(**given: Any) -> None:
        built = {name: _built(asked, given) for name, asked in records.items()}
        command(**given, **built)

    del run.__annotations__
    vars(run)["__signature__"] = inspect.Signature(parameters)
    return run


def _asked(kind: type, buts: Sequence[But]) -> _Asked:
    """The options of a record in a command, with the command's defaults."""
    without = {name for but in buts for name in but.without}
    defaults = {name: value for but in buts for name, value in but.defaults.items()}
    asked = _Asked(kind, [], {})
    for name, one in fields_of(kind).items():
        if one.setting.help and name not in without:
            asked.fields.append(replace(one, default=defaults.get(name, one.default)))
        elif isinstance(one.hint, type) and is_dataclass(one.hint) and one.default is REQUIRED:
            asked.parts[name] = _asked(one.hint, buts)
    return asked


def _option(one: Field, argument: bool) -> inspect.Parameter:
    setting, names = one.setting, _names(one)
    kind, default = _typed(one)
    if kind is bool and default is True:
        names = (f"{names[0]}/--no-{names[0][2:]}",)
    least = setting.none if setting.none is not None else setting.least
    least, most = (least, setting.most) if kind in (int, float) else (None, None)
    option: OptionInfo | ArgumentInfo
    if argument:
        option = typer.Argument(metavar=names[0].strip("-"), help=setting.help)
    else:
        option = typer.Option(*names, help=setting.help, min=least, max=most)
    hint = kind if default is not None or kind is bool else kind | None
    shown = inspect.Parameter.empty if default is REQUIRED else default
    return inspect.Parameter(
        one.name, inspect.Parameter.KEYWORD_ONLY, default=shown, annotation=Annotated[hint, option]
    )


def _names(one: Field) -> tuple[str, ...]:
    return one.setting.options or (f"--{one.name.replace('_', '-')}",)


def _typed(one: Field) -> tuple[Any, Any]:
    """The type that the command line reads for a field, and the default that it shows."""
    setting, default = one.setting, one.default
    if setting.flag is not None:
        return bool, False
    if default is None and setting.none is not None:
        default = setting.none
    if one.hint in (bool, int, float, Path):
        return one.hint, default
    if _is_list(one):
        return list[str], list(map(str, default)) if isinstance(default, tuple) else default
    return str, default if isinstance(default, str) or default is REQUIRED else None


def _is_list(one: Field) -> bool:
    """Whether a field takes several items, separated by commas or by repeating the option."""
    return get_origin(one.hint) is tuple and one.setting.read is None


def _built(asked: _Asked, given: dict[str, Any]) -> Any:
    """The record built from the options. Raises InputError with every mistake, one per line."""
    values = {name: _built(part, given) for name, part in asked.parts.items()}
    mistakes: list[InputError] = []
    for one in asked.fields:
        typed = given.pop(one.name)
        if isinstance(typed, list):
            typed = ",".join(typed)
        try:
            values[one.name] = _value(one, typed)
        except ValueError as error:
            unread = InputError(f"cannot read {_names(one)[0]} '{typed}': {error}")
            mistakes.append(error if isinstance(error, InputError) else unread)
    refuse([*mistakes, *mistakes_in(asked.kind, values)])
    return asked.kind(**values)


def _value(one: Field, typed: Any) -> Any:
    setting = one.setting
    if setting.flag is not None:
        return setting.flag if typed else one.default
    if typed is None:
        return one.default
    if setting.none is not None and typed == setting.none:
        return None
    if not isinstance(typed, str):
        return typed
    if setting.read is not None:
        return setting.read(typed)
    if _is_list(one):
        return tuple(_items(get_args(one.hint)[0], typed))
    return _item(one.hint, typed)


def _items(hint: Any, typed: str) -> Iterator[Any]:
    try:
        for part in split_calls(typed):
            yield float(part) if hint is float else int(part) if hint is int else _item(hint, part)
    except ValueError:
        raise ValueError("give numbers separated by commas.") from None


def _item(hint: Any, typed: str) -> Any:
    """A word, or a number where allowed, such as a column's number."""
    return int(typed) if int in get_args(hint) and typed.isdecimal() else typed


@dataclass(frozen=True, slots=True)
class TextOptions:
    """How texts are read, besides the settings; see raison.explain."""

    units: Annotated[
        Side | None, Setting("first or second: only the words of this text of a pair; the other is held fixed.")
    ] = None
    language: Annotated[str | None, Setting("Language of the sentences, such as de; with --unit sentence.")] = None


def plots_where_possible(wanted: bool) -> bool:
    """Whether to draw plots; without matplotlib no plots are drawn, with one line on stderr."""
    if not wanted or find_spec("matplotlib") is not None:
        return wanted
    typer.echo("raison: without plots, which need matplotlib (pip install 'raison[report]')", err=True)
    return False


def named(specs: Sequence[str], catalogue: "Catalogue[Any]") -> list[str]:
    """Names or calls; "all" means every name but auto. Raises InputError for an invalid one."""
    chosen = [name for name in catalogue.names if name != CHOOSING] if [*specs] == [ALL] else [*specs]
    for spec in chosen:
        catalogue.create(spec)
    return chosen


def check_named(chosen: "ComparisonSettings") -> None:
    """Raises InputError for an invalid method or metric."""
    from raison.methods import CATALOGUE as METHODS
    from raison.metrics import CATALOGUE as METRICS

    named(chosen.methods, METHODS)
    named(chosen.metrics or (), METRICS)
    named(chosen.select, METRICS)


def metrics_of(chosen: "ComparisonSettings") -> list[str] | None:
    """The metrics by name; None for the default ones."""
    from raison.metrics import CATALOGUE

    return None if chosen.metrics is None else named(chosen.metrics, CATALOGUE)


def methods_of(
    chosen: "ComparisonSettings",
    model: "LanguageModel | Writer",
    texts: "list[Given] | Answers",
    settings: "Settings",
    reading: TextOptions,
) -> Sequence[str]:
    """The methods by name; for "all", those that can explain the texts as they are read. The others are named on
    stderr."""
    from raison.core.registry import label_of
    from raison.explaining.answers import judged
    from raison.explaining.given_texts import InputOptions
    from raison.judging.compare import allowed
    from raison.methods import CATALOGUE

    if chosen.methods != (ALL,):
        return chosen.methods
    methods = [CATALOGUE.create(name) for name in named(chosen.methods, CATALOGUE)]
    given = judged(model, texts, InputOptions(settings.unit, reading.units, None, reading.language))
    able, reasons = allowed(given.model, methods, given.texts, replace(settings, unit=given.unit))
    for label, reason in reasons.items():
        typer.echo(printable(f"left out: {label}: {reason}"), err=True)
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
