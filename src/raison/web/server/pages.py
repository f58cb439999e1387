"""The page at /, and its files."""

from importlib.resources import files

from fastapi import FastAPI
from fastapi.responses import Response

from raison.web.server.runs import AbsentError

FILES = {"page.js": "text/javascript", "page.css": "text/css"}
"""The page's own files and their types."""


def paths(app: FastAPI) -> None:
    """Add the page."""

    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        return Response(_read("index.html"), media_type="text/html")

    @app.get("/assets/{name}", include_in_schema=False)
    async def asset(name: str) -> Response:
        if name not in FILES:
            raise AbsentError(f"the page has no file {name!r:.80}.")
        return Response(_read(name), media_type=FILES[name])


def _read(name: str) -> bytes:
    return files("raison.web.server").joinpath("page", name).read_bytes()
