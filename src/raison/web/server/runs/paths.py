"""The paths below /api/runs."""

from dataclasses import asdict, fields
from typing import Annotated

from fastapi import FastAPI, Query
from fastapi.responses import Response
from pydantic import BaseModel

from raison.core.results.citations import Citations
from raison.core.results.explanation import Explanation
from raison.core.results.generation import GenerationExplanation
from raison.core.settings.reading import plain_values
from raison.runs.overview import Overview
from raison.web.component.audits import Trusts
from raison.web.component.trust_facts import prediction_of
from raison.web.rows.lines import RowKey, RunFacts
from raison.web.rows.slices import LONGEST, Cut, Slice, TextFilter, slice_of
from raison.web.rows.strata import Stratum, strata
from raison.web.server.pages import json_response
from raison.web.server.runs.folders import RunFolders

Name = Annotated[str, Query(max_length=500, description="a name as GET /api/runs gives it")]
Words = Annotated[str, Query(max_length=500, description="at most 500 characters")]
Whole = Annotated[int, Query(ge=0, le=1 << 31, description="a whole number of at least 0")]
Share = Annotated[float, Query(ge=0, le=1, description="a number from 0 to 1")]
Choice = Annotated[bool, Query(description="true or false")]
Number = Annotated[float, Query(description="a number")]


class RunList(BaseModel):
    """What GET /api/runs gives."""

    runs: list[RunFacts]


class Strata(BaseModel):
    """What GET /api/runs/slices gives."""

    slices: list[Stratum]


class RowQuery(BaseModel):
    """One row of a run's table under one seed, as given in a query."""

    model_config = {"extra": "forbid"}

    run: Name
    row: Name
    seed: Whole = 0

    @property
    def place(self) -> RowKey:
        """The row's key."""
        return RowKey(self.run, self.row, self.seed)


class OneText(RowQuery):
    """One text of a row."""

    number: Whole


class SomeTexts(RowQuery):
    """Some texts of a row: which, in which order, from which position."""

    start: Whole = 0
    count: Annotated[int, Query(ge=1, le=LONGEST, description=f"a whole number from 1 to {LONGEST}")] = 50
    sort: Words = "number"
    descending: Choice = False
    prediction: Words | None = None
    target: Words | None = None
    label: Words | None = None
    wrong: Choice = False
    word: Words | None = None
    top: Words | None = None
    least: Whole = 0
    most: Whole | None = None
    surer: Share = 0.0
    unsurer: Share = 1.0
    above: Number | None = None
    below: Number | None = None


def runs_paths(app: FastAPI, runs: RunFolders, trusts: Trusts) -> None:
    """Add the paths. They read files, so each request runs in a separate thread."""

    @app.get("/api/runs")
    def listed() -> RunList:
        """The comparisons and explained files below the folder of --runs."""
        return RunList(runs=runs.all())

    @app.get("/api/runs/texts")
    def texts(query: Annotated[SomeTexts, Query()]) -> Slice:
        """A slice of one row of a run's table."""
        wanted = TextFilter(**{one.name: getattr(query, one.name) for one in fields(TextFilter)})
        return slice_of(runs.lines(query.place), wanted, Cut(query.start, query.count, query.sort, query.descending))

    @app.get("/api/runs/slices")
    def slices(query: Annotated[RowQuery, Query()]) -> Strata:
        """How often the model is right, by label, prediction, length and confidence."""
        return Strata(slices=strata(runs.lines(query.place)))

    @app.get("/api/runs/words", responses={200: {"model": Overview}})
    def words(query: Annotated[RowQuery, Query()]) -> Response:
        """The words that matter for each class, where the scores are, and the words that decide."""
        # A word may hold half of a character, which only an escape can write.
        return json_response(plain_values(asdict(runs.overview(query.place))))

    @app.get("/api/runs/explanation", responses={200: {"model": Explanation | GenerationExplanation | Citations}})
    def explanation(query: Annotated[OneText, Query()]) -> Response:
        """One explanation of a run; for an output or an answer, the complete result."""
        return Response(runs.explanation(query.place, query.number).to_json(), media_type="application/json")

    @app.get("/api/runs/trust")
    def trust(query: Annotated[OneText, Query()]) -> Response:
        """How far one map of a run can be trusted, and the name of its model if this very one is served."""
        e = prediction_of(runs.explanation(query.place, query.number))
        return json_response(trusts.of_run(runs.identity(query.run), e))
