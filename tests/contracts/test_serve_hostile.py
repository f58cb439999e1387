"""Hostile requests, a few hundred of them: each has its answer, and none of them reaches what it may not."""

from collections import Counter
from dataclasses import fields
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

from raison.core.errors import InputError
from raison.core.settings.fields import mistakes_in
from raison.methods import CATALOGUE as METHODS
from raison.metrics import CATALOGUE as METRICS
from raison.web.server import guard, running
from raison.web.server.calls import OUTSIDE, check_call
from raison.web.server.served import Served
from raison.web.server.settings import Limits, Shown
from tests.hostile import SECRET, asked, post, requests, wrong
from tests.integration.test_serve_live import listening
from tests.serving import BERT, bert

COUNT = 400
NAMES = {
    "aml": {"checkpoint", "metric"},
    "ivra": {"checkpoint"},
    "smat": {"checkpoint"},
    "reagent": {"filler"},
    "ensemble": {"methods", "normalise"},
    "gradient_shap": {"baselines"},
    "kernel_shap": {"estimator"},
    "resampled": {"method"},
    "rpi": {"layers"},
    "rpi_g": {"layers"},
    "simulatability": {"student", "part"},
}
"""Every setting of a method, and of a metric that reads files, that is a free string: each was looked at."""


def test_every_hostile_request_is_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "BODY_SECONDS", 1.0)
    monkeypatch.setattr(running, "HEAD_SECONDS", 1.0)
    runs, secret = tmp_path / "runs", tmp_path / "secret"
    for folder in (runs, secret):
        folder.mkdir()
    (secret / "run.json").write_text(f'{{"model": "{SECRET}"}}')
    (runs / "linked").symlink_to(secret, target_is_directory=True)
    served = Served({BERT: bert()}, limits=Limits(characters=6000, seconds=20), shown=Shown(runs=runs))
    troubles: list[str] = []
    statuses: Counter[str] = Counter()
    with listening(served) as port:
        for hostile in requests(BERT, COUNT):
            answer = asked(port, hostile.content)
            statuses[answer[9:12].decode()] += 1
            if trouble := wrong(answer):
                troubles.append(f"{trouble}: {hostile.kind}: {hostile.content[-300:]!r}")
        good = asked(port, post("/api/explain", b'{"model": "tiny", "text": "a dull plot", "method": "occlusion"}'))
        assert good.startswith(b"HTTP/1.1 200")
        assert served.healthy
    assert not troubles, "\n".join(troubles)
    # Neither all refused nor all accepted: the requests are what they are meant to be.
    assert statuses["200"] > COUNT / 10
    assert statuses["422"] > COUNT / 10
    assert {"400", "403", "404", "405"} <= set(statuses)


@pytest.mark.parametrize("catalogue", [METHODS, METRICS])
def test_every_setting_that_is_a_free_string_was_looked_at(catalogue: object) -> None:
    """A new one may name a file: then it belongs to OUTSIDE."""
    for name in catalogue.names:
        hints = get_type_hints(catalogue.get(name))
        free = {one.name for one in fields(catalogue.get(name)) if _holds_string(hints[one.name])}
        if catalogue is METHODS or free & {*OUTSIDE}:
            assert free == NAMES.get(name, set()), name


def _holds_string(hint: object) -> bool:
    return hint is str or any(map(_holds_string, get_args(hint)))


@pytest.mark.parametrize("catalogue", [METHODS, METRICS])
def test_defaults_may_be_asked_for(catalogue: object) -> None:
    for name in catalogue.names:
        instance = catalogue.create(name)
        check_call(instance, Limits())
        values = {one.name: getattr(instance, one.name) for one in fields(instance)}
        assert not mistakes_in(type(instance), values), name


@pytest.mark.parametrize(
    "call", ["kernel_shap(samples='8')", "kernel_shap(samples=8.5)", "random(draws=5001)", "aml(checkpoint='x')"]
)
def test_settings_that_do_not_fit_are_refused(call: str) -> None:
    try:
        made = METHODS.create(call)
    except InputError:
        return
    with pytest.raises(InputError):
        check_call(made, Limits())
