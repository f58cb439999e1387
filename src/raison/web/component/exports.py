"""Exports: the files that `save` writes, created here and sent to the page."""

from base64 import b64encode
from collections.abc import Mapping

from raison.core.errors import InputError, UnknownNameError
from raison.core.results.citations import Citations
from raison.core.results.explanation import Explanation
from raison.core.results.generation import GenerationExplanation
from raison.core.settings.reading import Fields
from raison.report.pages.saving import content_of

TYPES: Mapping[str, str] = {
    "html": "text/html",
    "json": "application/json",
    "svg": "image/svg+xml",
    "tex": "text/x-tex",
    "png": "image/png",
}
"""Kinds of files by the endings of their names, with their media types."""

Result = Explanation | GenerationExplanation | Citations


def taken(body: Mapping[str, object]) -> dict[str, object]:
    """A file of results: `{"results": [...], "kind": "svg"}` gives its name, type and content in base64.

    Raises RaisonErrors: several results are one file as HTML or JSON only, and PNG needs matplotlib.
    """
    fields = Fields(body, "a request")
    fields.need(["results", "kind"])
    kind = fields.string("kind")
    if kind not in TYPES:
        raise UnknownNameError("kind of file", kind, TYPES)
    results = [_read(dict(item.data)) for item in fields.objects("results")]
    if not results:
        raise InputError("there is nothing to export: give at least one result.")
    content = _content(results, f".{kind}")
    plain = content.encode() if isinstance(content, str) else content
    return {"name": f"explanation.{kind}", "type": TYPES[kind], "content": b64encode(plain).decode()}


def _content(results: list[Result], kind: str) -> str | bytes:
    if len(results) == 1:
        return content_of(results[0], kind)
    explanations = [one for one in results if isinstance(one, Explanation)]
    if len(explanations) < len(results):
        raise InputError("an output or a citation is exported to its own file: give only one.")
    return content_of(explanations, kind)


def _read(values: dict[str, object]) -> Result:
    if "statements" in values:
        return Citations.from_dict(values)
    return GenerationExplanation.from_dict(values) if "tokens" in values else Explanation.from_dict(values)
