"""The command line: parse, call, show. Bad input is one clear line and exit code 2."""

import sys
from io import TextIOWrapper
from typing import Annotated, NoReturn

import typer

from raison._version import __version__
from raison.cli import audit, catalogue, cite, compare, doctor, estimate, explain, report, serve, study
from raison.cli.interruption import interruptible
from raison.cli.train.commands import app as training
from raison.core.errors import MISTAKE, RaisonError
from raison.core.results.printable import printable

app = typer.Typer(
    name="raison",
    help=(
        "Which tokens, words or sentences led a language model to its output, and how far the explanation can be "
        "trusted."
    ),
    no_args_is_help=True,
    invoke_without_command=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.command("explain")(interruptible("data")(explain.explain))
app.command("compare")(interruptible("out")(compare.compare))
app.command("audit")(interruptible("folder")(audit.audit))
app.command("methods")(catalogue.methods)
app.command("metrics")(catalogue.metrics)
app.command("bibtex")(catalogue.references)
app.command("cite")(interruptible("data and out")(cite.cite))
app.command("doctor")(interruptible("nothing")(doctor.doctor))
app.command("estimate")(interruptible("nothing")(estimate.estimate))
app.command("report")(interruptible("pages")(report.report))
app.command("serve")(serve.serve)
app.add_typer(study.app, name="study")
app.add_typer(training, name="train")


@app.callback()
def _raison(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.", is_eager=True)] = False,
) -> None:
    if version:
        typer.echo(f"raison {__version__}")
        raise typer.Exit


def main() -> None:
    """Entry point of the command `raison`."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # A terminal that cannot show a character shows a question mark instead of stopping.
            stream.reconfigure(errors="replace")
    try:
        app()
    except RaisonError as error:
        _refuse(str(error))
    except KeyboardInterrupt:
        # Before a command began, or in a short one.
        sys.stderr.write("raison: interrupted.\n")
        sys.exit(130)
    except BrokenPipeError:
        # The reader of the output has stopped, as `head` does.
        sys.stderr.close()
        sys.exit(0)
    except OSError as error:
        _refuse(f"{error.strerror or error}: {str(error.filename or '')[:200]}".rstrip(": ") + ".")
    except UnicodeError as error:
        _refuse(f"this is not text in the expected encoding ({str(error)[:200]}).")
    except MemoryError:
        _refuse("out of memory: give fewer or shorter texts, or a smaller model.")


def _refuse(reason: str) -> NoReturn:
    """Print the reason on one line (a list of mistakes: one line each) and exit with the code of bad input."""
    lines = (printable(line) for line in reason.split(MISTAKE))
    sys.stderr.write(f"raison: {MISTAKE.join(lines)}\n")
    sys.exit(2)
