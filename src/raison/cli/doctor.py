"""raison doctor."""

import json as json_module
from typing import TYPE_CHECKING, Annotated

import typer

from raison.cli import options
from raison.core.errors import RaisonError

if TYPE_CHECKING:
    from raison.core.capability import Capability
    from raison.core.method import Method
    from raison.core.model import LanguageModel
    from raison.models.adapters.classifier import Classifier
    from raison.models.adapters.selfcheck import Finding

USUAL = 512
"""Tokens of the text whose time and memory are computed for a model without a limit."""
FEW = 10
"""Names that are all listed; of more, so many."""


@options.from_records
def doctor(
    entry: Annotated[options.Model, options.But(argument="name")],
    text: Annotated[str | None, typer.Option(help="The text to check with.")] = None,
    tokens: Annotated[
        int | None, typer.Option(min=1, help="Length of a text whose time and memory are computed; the longest input.")
    ] = None,
    json: options.Json = False,
) -> None:
    """Check what a model supports and which methods will work on it. Exit code 1 if a check fails."""
    from raison.methods import CATALOGUE
    from raison.models.adapters.classifier import Classifier
    from raison.models.adapters.selfcheck import TEXT, disproved, selfcheck
    from raison.studies.plans import load_named_model

    loaded = load_named_model(entry)
    assert isinstance(loaded, Classifier)
    findings = selfcheck(loaded, text or TEXT)
    refuted = disproved(findings)
    works = {name: _against(loaded, CATALOGUE.create(name), refuted) for name in CATALOGUE.names}
    facts: dict[str, object] = {
        "model": loaded.name,
        "class": type(loaded.core).__name__,
        "outputs": loaded.outputs,
        "classes": list(loaded.classes),
        "longest input": loaded.max_tokens,
        "device": str(loaded.device),
        "dtype": str(loaded.core.dtype).removeprefix("torch."),
        "removals": list(loaded.removals),
        **_lengthy(loaded, tokens or loaded.max_tokens or USUAL),
    }
    if json:
        report = {**facts, "checks": [_plain(finding) for finding in findings], "methods": works}
        typer.echo(json_module.dumps(report, indent=1))
    else:
        _show(facts, [_plain(finding) for finding in findings], works)
    if not all(finding.passed for finding in findings):
        raise typer.Exit(1)


def _lengthy(model: "Classifier", tokens: int) -> dict[str, object]:
    """What one text of so many tokens takes, as facts."""
    from raison.models.adapters.forecast import forecast
    from raison.models.stack.room import free_bytes

    found = forecast(model, tokens)
    told = [f"a pass takes about {found.evaluation.seconds:.2g} s"]
    named = (("with gradients", found.gradient), ("with all its attention", found.attention))
    told += [f"{name} {e.seconds:.2g} s and {e.kept / 2**30:.2g} GiB" for name, e in named if e is not None]
    free = free_bytes(model.device)
    if free is not None:
        told.append(f"{free / 2**30:.2g} GiB are free")
    return {f"{tokens:,} tokens": told}


def _against(model: "LanguageModel", method: "Method", refuted: "frozenset[type[Capability]]") -> list[str]:
    """Why a method does not work on a model."""
    if reasons := method.lacking(model, refuted):
        return reasons
    try:
        method.check(model)
    except RaisonError as error:
        return [str(error)]
    return []


def _plain(finding: "Finding") -> dict[str, object]:
    capability = None if finding.capability is None else finding.capability.name
    return {"check": finding.check, "passed": finding.passed, "detail": finding.detail, "capability": capability}


def _listed(values: list[object]) -> str:
    """Names of classes or removals; of many the first ones."""
    told = ", ".join(map(str, values[:FEW]))
    return told if len(values) <= FEW else f"{told}, and {len(values) - FEW} others"


def _show(facts: dict[str, object], checks: list[dict[str, object]], works: dict[str, list[str]]) -> None:
    from rich.console import Console
    from rich.text import Text

    from raison.core.printable import printable

    console = Console(highlight=False)
    for name, value in facts.items():
        shown = _listed(value) if isinstance(value, list) else value
        console.print(Text(printable(f"{name:14}{'no limit' if shown is None else shown}")))
    console.print()
    for check in checks:
        mark, style = ("ok  ", "green") if check["passed"] else ("FAIL", "bold red")
        console.print(Text.assemble((mark, style), printable(f"  {check['check']}: {check['detail']}")))
    console.print()
    console.print(Text("methods that work: " + ", ".join(name for name, missing in works.items() if not missing)))
    for name, missing in works.items():
        if missing:
            console.print(Text(f"  not {name}: {'; '.join(missing)}"))
