"""Options of the command line that are made from the fields of records."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import pytest
import typer
from typer.testing import CliRunner, Result

import raison
from raison.cli import app, options
from raison.core.errors import InputError
from raison.core.inputs.unit import Side
from raison.core.settings.fields import REQUIRED, Setting, check, fields_of
from raison.explaining.settings import ComparisonSettings, Settings


@dataclass(frozen=True, slots=True)
class Painting:
    colours: Annotated[tuple[str, ...], Setting("Names with commas between.", options=("--colours", "-c"))]
    size: Annotated[Literal["small", "large"], Setting("small or large.")] = "small"
    coats: Annotated[int, Setting("How often.", least=1)] = 2
    shares: Annotated[tuple[float, ...], Setting("Of each colour.")] = ()
    column: Annotated[str | int | None, Setting("A name or a number.")] = None
    frame: Annotated[int | None, Setting("Its width; 0 for none.", least=1, none=0)] = 3
    glossy: Annotated[bool, Setting("With varnish.")] = False
    side: Annotated[Literal["front", "back"], Setting("Paint the back.", options=("--back",), flag="back")] = "front"
    hidden: int = 7

    def __post_init__(self) -> None:
        check(self)


def run(*words: str, but: options.But | None = None) -> tuple[Result, list[Painting]]:
    """A command that takes a painting, called with these words, and what it was given."""
    given: list[Painting] = []

    @options.from_records
    def paint(painting: Annotated[Painting, but or options.But()], out: Path = Path("wall")) -> None:
        assert out == Path("wall")
        given.append(painting)

    small = typer.Typer(rich_markup_mode=None, add_completion=False)
    small.command()(paint)
    return CliRunner().invoke(small, list(words)), given


def test_defaults_are_the_records_own() -> None:
    assert run("--colours", "red")[1] == [Painting(("red",))]


def test_every_sort_of_field_is_read() -> None:
    words = ["-c", "red, blue(dark, matt)", "--size", "large", "--coats", "5", "--shares", "1,0.5", "--column", "3"]
    _, given = run(*words, "--frame", "0", "--glossy", "--back")
    assert given == [Painting(("red", "blue(dark, matt)"), "large", 5, (1.0, 0.5), 3, None, glossy=True, side="back")]


def test_a_list_has_commas_or_its_option_several_times() -> None:
    words = ["-c", "red", "--colours", "blue(dark, matt),green", "--shares", "1", "--shares", "0.5,2"]
    assert run(*words)[1] == [Painting(("red", "blue(dark, matt)", "green"), shares=(1.0, 0.5, 2.0))]


def test_all_mistakes_are_told_at_once() -> None:
    result, given = run("-c", "red", "--size", "lage", "--shares", "1,x")
    assert given == []
    assert isinstance(result.exception, InputError)
    first, second = str(result.exception).split("\n  ")
    assert first == "cannot read --shares '1,x': give numbers separated by commas."
    assert second == "unknown size 'lage'. Did you mean 'large'? Known: large, small."


def test_a_command_leaves_fields_out_and_begins_others_otherwise() -> None:
    but = options.But(without=("size", "frame"), defaults={"coats": 9, "column": REQUIRED}, argument="column")
    assert run("-c", "red", "title", but=but)[1] == [Painting(("red",), coats=9, column="title")]
    assert "--size" not in run("--help", but=but)[0].output
    assert run("-c", "red", but=but)[0].exit_code == 2


def test_help_has_the_fields_words_bounds_and_defaults() -> None:
    said = " ".join(run("--help")[0].output.split())
    assert "-c, --colours <list[str]> Names with commas between. [required]" in said
    assert "--coats <int range> How often. [default: 2; x>=1]" in said
    assert "--frame <int range> Its width; 0 for none. [default: 3; x>=0]" in said
    assert "--hidden" not in said


def test_a_record_refuses_the_same_without_a_command_line() -> None:
    with pytest.raises(
        InputError, match=r"unknown size 'x'.*\n  coats cannot be 0: give a whole number of at least 1\."
    ):
        Painting(("red",), "x", 0)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Exhibition:
    painting: Painting
    hidden: Annotated[int, Setting("Where it hangs.", least=1)] = 1


def test_a_record_in_a_record_has_options_of_its_own() -> None:
    given: list[Exhibition] = []

    @options.from_records
    def exhibit(shown: Annotated[Exhibition, options.But(without=("size",), defaults={"coats": 9})]) -> None:
        given.append(shown)

    small = typer.Typer(rich_markup_mode=None, add_completion=False)
    small.command()(exhibit)
    assert CliRunner().invoke(small, ["-c", "red", "--hidden", "4", "--glossy"]).exit_code == 0
    # The painting's own field `hidden` is no option, so that the name is free.
    assert given == [Exhibition(Painting(("red",), coats=9, glossy=True), hidden=4)]


def _commands() -> list[tuple[str, typer.models.CommandInfo]]:
    groups = [app, *(group.typer_instance for group in app.registered_groups if group.typer_instance)]
    return [(command.name or "", command) for group in groups for command in group.registered_commands]


@pytest.mark.parametrize(("name", "command"), _commands(), ids=lambda value: value if isinstance(value, str) else "")
def test_every_option_of_every_command_has_a_sentence(name: str, command: typer.models.CommandInfo) -> None:
    assert command.callback is not None
    small = typer.Typer()
    small.command()(command.callback)
    assert all(getattr(option, "help", "") for option in typer.main.get_command(small).params), name


def test_a_setting_is_known_without_its_type() -> None:
    assert fields_of(Painting)["frame"].optional
    assert fields_of(Painting)["frame"].hint is int
    assert fields_of(Painting)["hidden"].setting == Setting()


@pytest.mark.parametrize(("units", "able"), [(None, False), ("second", True)])
def test_all_methods_are_those_for_the_units_that_are_explained(
    units: Side | None, able: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    pair = (" ".join(["premise"] * 26), "it is good really")
    model = raison.load(lambda texts: [[0.9, 0.1] for _ in texts], classes=["no", "yes"], pairs=True)
    chosen, reading = ComparisonSettings(methods=("all",)), options.TextOptions(units=units)
    methods = options.methods_of(chosen, model, [pair], Settings(), reading)
    assert ("shapley_exact" in methods) is able
    assert ("shapley_exact: a text has 30 units" in capsys.readouterr().err) is not able
