"""The page at /: the component, its files, and what it asks of the server besides explanations."""

from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from typing import Annotated, Any

from fastapi import FastAPI
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from raison.core.settings.reading import dump
from raison.web.component.asked import read_explanations
from raison.web.component.sources import module, style
from raison.web.component.views import seen
from raison.web.server.runs import AbsentError

MOST = 4
"""Explanations that are shown beside each other."""


@cache
def _own(name: str) -> str:
    return files("raison.web.server").joinpath("page", name).read_text("utf-8")


FILES: Mapping[str, tuple[str, Callable[[], str]]] = {
    "page.js": ("text/javascript", lambda: _own("page.js")),
    "page.css": ("text/css", lambda: _own("page.css")),
    "component.js": ("text/javascript", module),
    "component.css": ("text/css", style),
}
"""The page's files by their names: their types, and what is in them."""


class ViewBody(BaseModel):
    """What POST /api/view takes."""

    model_config = ConfigDict(extra="forbid", strict=True)

    explanations: Annotated[
        list[dict[str, Any]], Field(max_length=MOST, description=f"the JSON of up to {MOST} explanations, in a list")
    ]


def paths(app: FastAPI) -> None:
    """Add the page."""

    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        return Response(_own("index.html"), media_type="text/html")

    @app.get("/assets/{name}", include_in_schema=False)
    async def asset(name: str) -> Response:
        if name not in FILES:
            raise AbsentError(f"the page has no file {name!r:.80}.")
        kind, content = FILES[name]
        return Response(content(), media_type=kind)

    @app.post("/api/view")
    def view(body: ViewBody) -> Response:
        """How the page paints explanations: spans with their shades and labels, bars, remarks."""
        return Response(dump(seen(read_explanations(body.model_dump()))), media_type="application/json")
