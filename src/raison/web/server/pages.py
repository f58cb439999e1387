"""The pages at / and /runs: the component, its files, and its requests besides explanations."""

from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from typing import Annotated, Any

from fastapi import FastAPI
from fastapi.responses import Response
from pydantic import Field

from raison.core.settings.reading import dump
from raison.web.component.citations_view import citations_seen
from raison.web.component.explain_request import read_explanations
from raison.web.component.exports import TYPES, taken
from raison.web.component.generation_view import output_seen, span_seen, token_seen
from raison.web.component.sources import module, style
from raison.web.component.views import seen
from raison.web.rows.lines import AbsentError
from raison.web.server.bodies import Body

MOST = 4
"""Maximum number of explanations that are shown side by side."""


@cache
def _own(name: str) -> str:
    return files("raison.web.server").joinpath("page", name).read_text("utf-8")


FILES: Mapping[str, tuple[str, Callable[[], str]]] = {
    "page.js": ("text/javascript", lambda: _own("page.js")),
    "runs.js": ("text/javascript", lambda: _own("runs.js")),
    "connection.js": ("text/javascript", lambda: _own("connection.js")),
    "page.css": ("text/css", lambda: _own("page.css")),
    "component.js": ("text/javascript", module),
    "component.css": ("text/css", style),
}
"""The page's files by their names: their types and contents."""


class ViewBody(Body):
    """What POST /api/view takes."""

    explanations: Annotated[
        list[dict[str, Any]], Field(max_length=MOST, description=f"the JSON of up to {MOST} explanations, in a list")
    ]


class FileBody(Body):
    """What POST /api/view/file takes."""

    results: Annotated[
        list[dict[str, Any]],
        Field(max_length=MOST, description=f"the JSON of up to {MOST} explanations, of an output, or of citations"),
    ]
    kind: Annotated[str, Field(max_length=10, description=f"one of {', '.join(TYPES)}")]


class TrustBody(Body):
    """What POST /api/view/trust takes."""

    model: Annotated[str, Field(max_length=500, description="the name of a model of GET /api/models")]
    explanation: Annotated[dict[str, Any], Field(description="the JSON of an explanation")]


class OutputBody(Body):
    """A request about an explained output."""

    explanation: Annotated[dict[str, Any], Field(description="the JSON of an explained output")]


class OutputsBody(OutputBody):
    """What POST /api/view/output takes."""

    beside: Annotated[
        dict[str, Any] | None, Field(description="the JSON of another explained output, with which it is compared")
    ] = None


class SpanBody(OutputBody):
    """What POST /api/view/span takes."""

    first: Annotated[int, Field(ge=0, description="the number of the first output token, from 0 on")]
    last: Annotated[int, Field(ge=0, description="the number of the last output token, from 0 on")]


class TokenBody(OutputBody):
    """What POST /api/view/token takes."""

    token: Annotated[int, Field(ge=0, description="the number of an output token, from 0 on")]


class CitationsBody(Body):
    """What POST /api/view/citations takes."""

    citations: Annotated[dict[str, Any], Field(description="the JSON of citations")]


def paths(app: FastAPI) -> None:
    """Add the pages."""

    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        return Response(_own("index.html"), media_type="text/html")

    @app.get("/runs", include_in_schema=False)
    async def runs() -> Response:
        return Response(_own("runs.html"), media_type="text/html")

    @app.get("/assets/{name}", include_in_schema=False)
    async def asset(name: str) -> Response:
        if name not in FILES:
            raise AbsentError(f"the page has no file {name!r:.80}.")
        kind, content = FILES[name]
        return Response(content(), media_type=kind)

    @app.post("/api/view/file")
    def file(body: FileBody) -> Response:
        """What is seen as a file: its name, its type, and its content in base64."""
        return json_response(taken(body.model_dump()))

    @app.post("/api/view")
    def view(body: ViewBody) -> Response:
        """How the page paints explanations: spans with their shades and labels, bars, remarks."""
        return json_response(seen(read_explanations(body.model_dump())))

    @app.post("/api/view/output")
    def view_output(body: OutputsBody) -> Response:
        """How the page paints what a model wrote: the answer's tokens, and the prompt's map for each and for all."""
        return json_response(output_seen(body.model_dump()))

    @app.post("/api/view/span")
    def view_span(body: SpanBody) -> Response:
        """The prompt's map for consecutive tokens of an answer."""
        return json_response(span_seen(body.model_dump()))

    @app.post("/api/view/token")
    def view_token(body: TokenBody) -> Response:
        """One token of an answer as a map of its own, as /api/view gives it."""
        return json_response(token_seen(body.model_dump()))

    @app.post("/api/view/citations")
    def view_citations(body: CitationsBody) -> Response:
        """How the page paints statements and their sources."""
        return json_response(citations_seen(body.model_dump()))


def json_response(values: dict[str, object]) -> Response:
    """An answer in JSON."""
    return Response(dump(values), media_type="application/json")
