"""The application: its paths, and its error responses."""

import contextlib
import inspect
from collections.abc import AsyncIterator
from dataclasses import replace
from http import HTTPStatus
from typing import Annotated, Any, get_args

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from raison._version import __version__
from raison.core.errors import MISTAKE, RaisonError, UnknownNameError
from raison.core.results.citations import Citations
from raison.core.results.explanation import Explanation
from raison.core.settings.reading import dump
from raison.web.component.audits import Trusts
from raison.web.component.messages import truncatable
from raison.web.rows.lines import AbsentError
from raison.web.server import facts, pages
from raison.web.server.bodies import CiteBody, ExplainBody, PredictBody, described
from raison.web.server.calls import ExplanationRequest, PredictionRequest
from raison.web.server.citing import CitationsRequest
from raison.web.server.guard import GONE, MISTAKEN, Guard
from raison.web.server.runs.folders import RunFolders
from raison.web.server.runs.paths import runs_paths
from raison.web.server.served import LeftError, ServedModels
from raison.web.server.trust import CheckRequest
from raison.web.server.worker import FullError


class ErrorBody(BaseModel):
    """Every error."""

    error: str
    truncatable: Annotated[bool, Field(description="whether the text is too long, so that truncate=true helps")] = False


ERRORS: dict[int | str, dict[str, Any]] = {
    422: {"model": ErrorBody, "description": "The library refuses the call, with its message."},
    429: {"model": ErrorBody, "description": "Too many requests are waiting; Retry-After says when to retry."},
}


def application(served: ServedModels) -> Guard:
    """The application that serves these models; it starts with the server."""

    @contextlib.asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        served.start()
        yield
        served.stop()

    app = FastAPI(
        title="raison",
        version=__version__,
        summary="Explanations of language models",
        lifespan=life,
        # FastAPI's own pages load scripts from other sites.
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        responses=ERRORS,
    )
    _explaining(app, served)
    _listing(app, served)
    trusts = Trusts(served.models, served.shown.runs)
    trusts.prepare()
    runs_paths(app, RunFolders(served.shown.runs), trusts)
    pages.paths(app)
    _trusting(app, served, trusts)
    _errors(app)
    return Guard(app, served.access, served.counts, served.shown.log_texts)


def _explaining(app: FastAPI, served: ServedModels) -> None:
    @app.post("/api/explain", responses={200: {"model": Explanation}})
    async def explain(request: Request, body: ExplainBody) -> Response:
        """Explain a text: the JSON of an Explanation (of several, or of an output, where these are asked for)."""
        served.worker(body.model)
        return await served.answer(request, ExplanationRequest.read(body, served.limits))

    @app.post("/api/cite", responses={200: {"model": Citations}})
    async def cite(request: Request, body: CiteBody) -> Response:
        """Which sources a language model's answer rests on: the JSON of Citations."""
        served.worker(body.model)
        return await served.answer(request, CitationsRequest.read(body, served.limits))

    @app.post("/api/predict")
    async def predict(request: Request, body: PredictBody) -> Response:
        """Predict, or write, without an explanation."""
        served.worker(body.model)
        return await served.answer(request, PredictionRequest.read(body, served.limits))


def _trusting(app: FastAPI, served: ServedModels, trusts: Trusts) -> None:
    @app.post("/api/view/trust")
    def trust(body: pages.TrustBody) -> Response:
        """How far a map can be trusted: an audit below --runs of this very model, or else what its method promises."""
        served.worker(body.model)
        return pages.json_response(trusts.of(body.model, Explanation.from_dict(body.explanation)))

    @app.post("/api/check")
    async def check(request: Request, body: ExplainBody) -> Response:
        """Explain a text, and test that map: shuffled scores, harmless changes, its strongest units removed."""
        served.worker(body.model)
        call = CheckRequest.read(body, served.limits)
        return await served.answer(request, replace(call, known=served.kept.get(call.own.key)))


def _listing(app: FastAPI, served: ServedModels) -> None:
    offered, catalogue = facts.offer(served.models, served.limits), facts.catalogue()

    @app.get("/api/models")
    async def models() -> facts.Offer:
        """The models, the methods that work on each, and the limits of requests."""
        return offered

    @app.get("/api/methods")
    async def methods() -> facts.MethodList:
        """The catalogue of methods."""
        return catalogue

    @app.get("/healthz")
    async def health() -> Response:
        """Whether every model answers."""
        status = "ok" if served.healthy else "a model's thread has ended"
        return JSONResponse({"status": status}, HTTPStatus.OK if served.healthy else HTTPStatus.SERVICE_UNAVAILABLE)

    @app.get("/metrics")
    async def metrics() -> Response:
        """Counts and times for Prometheus."""
        return Response(served.counts.exposition(), media_type="text/plain; version=0.0.4")


def _errors(app: FastAPI) -> None:
    @app.exception_handler(RaisonError)
    async def refused(_: Request, error: RaisonError) -> Response:
        return _error(422, str(error), truncatable=truncatable(error))

    @app.exception_handler(AbsentError)
    async def absent(_: Request, error: AbsentError) -> Response:
        return _error(404, str(error))

    @app.exception_handler(RequestValidationError)
    async def unread(request: Request, error: RequestValidationError) -> Response:
        status, line = _mistake(error.errors()[0], _asked_of(request))
        return _error(status, line)

    @app.exception_handler(FullError)
    async def full(_: Request, error: FullError) -> Response:
        return _error(429, str(error), {"retry-after": str(error.seconds)})

    @app.exception_handler(LeftError)
    async def left(_: Request, error: LeftError) -> Response:
        return _error(GONE, "the client left.")

    @app.exception_handler(Exception)
    async def mistaken(_: Request, error: Exception) -> Response:
        # The guard logs the place of the error.
        return _error(500, MISTAKEN)

    @app.exception_handler(HTTPException)
    async def other(_: Request, error: HTTPException) -> Response:
        return _error(error.status_code, f"{str(error.detail).rstrip('.')}.", dict(error.headers or {}))


def _error(status: int, line: str, headers: dict[str, str] | None = None, *, truncatable: bool = False) -> Response:
    content = dump({"error": line.replace(MISTAKE, " "), **({"truncatable": True} if truncatable else {})})
    return Response(content, status, headers, "application/json")


def _asked_of(request: Request) -> type[BaseModel]:
    """The arguments of a request: its body, or the fields of its query."""
    taken = inspect.signature(request.scope["endpoint"]).parameters.values()
    (annotation,) = (one.annotation for one in taken if one.name in ("body", "query"))
    model: type[BaseModel] = get_args(annotation)[0] if get_args(annotation) else annotation
    return model


def _mistake(error: dict[str, Any], body: type[BaseModel]) -> tuple[int, str]:
    """The status and the error line for an invalid body or query."""
    kind, place = error["type"], [part for part in error["loc"] if part not in ("body", "query")]
    name = str(place[0]) if place else ""
    if kind == "json_invalid":
        return 400, "the body is no JSON."
    if kind == "extra_forbidden":
        return 422, str(UnknownNameError("field", name, body.model_fields))
    if kind == "missing":
        return 422, f"{name or 'the body'} is missing: give {described(name, body) if name else 'a JSON object'}."
    if not name:
        return 422, "the body cannot be read: give a JSON object."
    return 422, f"{name} cannot be {error['input']!r:.80}: give {described(name, body)}."
