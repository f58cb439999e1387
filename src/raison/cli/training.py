"""What the training commands share: reading data, and writing down the command."""

import os
import shlex
from pathlib import Path

import typer

from raison.cli.rows import say_taken
from raison.data import Dataset, Wanted, load, load_file, named


def names_in(option: str) -> tuple[str, ...]:
    """The words of an option with commas between."""
    return tuple(name.strip() for name in option.split(",") if name.strip())


def columns_of(pair: str | None) -> tuple[str, str] | None:
    """Two columns' names with a comma between."""
    first, _, second = (pair or "").partition(",")
    return (first, second) if pair else None


def read_split(source: str, wanted: Wanted, skip_bad: bool) -> Dataset:
    """A file, or SET:SPLIT of a named data set."""
    name, _, split = source.partition(":")
    if name in named():
        return load(name, wanted, split=split or "train", skip_bad=skip_bad)
    data = load_file(source, wanted.text, wanted.pair, wanted.label, delimiter=wanted.delimiter, skip_bad=skip_bad)
    say_taken(source, data)
    return data


def command_line(context: typer.Context, command: str) -> str:
    """The command as typed, with paths relative to the current folder, so that a card names no machine's folders."""
    words = ["raison", "train", command]
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if source is None or source.name != "COMMANDLINE":
            continue
        value = context.params[parameter.name or ""]
        if value is True:
            words.append(parameter.opts[0])
            continue
        is_path = isinstance(value, Path) or (isinstance(value, str) and os.path.exists(value))
        words += [parameter.opts[0], os.path.relpath(value) if is_path else str(value)]
    return shlex.join(words)
