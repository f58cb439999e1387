"""A server that misbehaves: what is repeated, what is refused, and what is never told."""

import json
import pickle
import sqlite3
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner

import raison
from raison.cli import app
from raison.core.errors import AnswerError, InputError, RaisonError, ServerError
from raison.judging.estimate import estimate
from raison.models.served import transport
from raison.models.served.address import Address
from raison.models.served.request_settings import SpentError
from raison.models.served.server import store_path
from tests.fake_server import Fake, pieces, probability, running

TEXT = "a warm and great film"
KEY = "sk-very-secret-0123456789"


def explained(fake: Fake, served: raison.Served | str | None = None, concurrency: int = 8) -> raison.Explanation:
    model = raison.load(fake.base, prompt="sentiment", served=served, concurrency=concurrency)
    return raison.explain(model, TEXT, method="occlusion", progress=False)


@pytest.mark.parametrize("fault", ["429", "500", "503", "cut", "junk", "error"])
def test_a_busy_server_is_asked_again(fault: str) -> None:
    with running(Fake()) as fake:
        model = raison.load(fake.base, prompt="sentiment")
        fake.faults += [fault, "", fault, fault]
        e = raison.explain(model, TEXT, method="occlusion", progress=False)
        # Three attempts failed, and count.
        assert model.server.meter.requests == len(fake.requests)
        different = {json.dumps(body) for body in fake.requests}
        assert len(different) == len(fake.requests) - 3 - e.notes["noise"]["repeated"]
    assert e.probabilities[1] == pytest.approx(probability(TEXT), abs=1e-9)


def test_one_that_stays_busy_is_given_up() -> None:
    with running(Fake()) as fake:
        model = raison.load(fake.base, prompt="sentiment", served=raison.Served(attempts=3))
        fake.faults += ["503"] * 100
        with pytest.raises(ServerError, match="tried 3 times: status 503"):
            raison.explain(model, TEXT, method="occlusion", progress=False)


def test_one_that_crashes_before_it_answers_anything_is_given_up() -> None:
    with running(Fake(faults=["500"] * 100)) as fake:
        model_of = partial(raison.load, fake.base, prompt="sentiment", served=raison.Served(attempts=2))
        with pytest.raises(ServerError, match="status 500"):
            model_of()


def test_a_text_at_which_it_crashes_is_named() -> None:
    with running(Fake()) as fake:
        model = raison.load(fake.base, prompt="sentiment", served=raison.Served(attempts=2))
        fake.faults_at["warm"] = "500"
        with pytest.raises(AnswerError, match="cannot answer one request, tried 2 times: status 500") as caught:
            raison.explain(model, TEXT, method="occlusion", progress=False)
        assert any("a warm and great film" in note for note in caught.value.__notes__)


def test_a_late_answer_is_not_waited_for() -> None:
    late = pytest.raises(ServerError, match=r"Timeout|no complete answer within 0\.1 seconds")
    with running(Fake(faults=["late"] * 2)) as fake, late:
        raison.load(fake.base, prompt="sentiment", served=raison.Served(timeout=0.1, attempts=2))


def test_one_that_drips_is_not_waited_for_either() -> None:
    with running(Fake()) as fake:
        model = raison.load(fake.base, prompt="sentiment", served=raison.Served(timeout=0.5, attempts=2), concurrency=1)
        fake.faults += ["drip"] * 2
        with pytest.raises(ServerError, match=r"tried 2 times: no complete answer within 0\.5 seconds"):
            raison.explain(model, TEXT, method="occlusion", progress=False)
        assert not fake.dripped


@pytest.mark.parametrize(
    ("header", "seconds"),
    [(None, 0.0), ("3", 3.0), (" 1.5 ", 1.5), ("-4", 0.0), ("nan", 0.0), ("soon", 0.0)],
)
def test_a_server_s_pause_is_read(header: str | None, seconds: float) -> None:
    assert transport.requested_pause(header) == seconds


def test_a_server_s_pause_may_be_a_date() -> None:
    tomorrow = format_datetime(datetime.now(UTC) + timedelta(days=1), usegmt=True)
    assert transport.requested_pause(tomorrow) == pytest.approx(86_400, abs=60)


def test_a_pause_is_at_least_what_the_server_asks_for() -> None:
    sender = transport.Transport(Address("http://127.0.0.1:9/v1"), 1.0, 2, 1)
    assert sender.pause(0, 300.0) == 300.0
    assert sender.pause(30, 0.0) == transport.LONGEST_PAUSE


def test_a_server_that_asks_for_an_hour_is_not_waited_for() -> None:
    with running(Fake(retry_after="3600")) as fake:
        model = raison.load(fake.base, prompt="sentiment")
        fake.faults += ["429"]
        with pytest.raises(ServerError, match="asks to wait 3,600 seconds"):
            raison.explain(model, TEXT, method="occlusion", progress=False)


def test_a_label_that_cannot_follow_has_no_probability() -> None:
    with running(Fake(top=5, features={"completions"}, impossible={" great"})) as fake:
        e = explained(fake)
    assert dict(zip(e.classes, e.probabilities, strict=True))[e.classes[1]] == 0.0
    assert e.scores == (0.0,) * len(e.units)


def test_labels_that_cannot_follow_at_all_are_an_error_of_one_line() -> None:
    with (
        running(Fake(impossible={" great", " terrible"})) as fake,
        pytest.raises(AnswerError, match="use label words that the model would"),
    ):
        explained(fake)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("401", "rejects the key"),
        ("404", "status 404"),
        ("list", "instead of an object"),
        ("nan", "as a log-probability"),
        ("huge", "more than 1 MiB"),
        ("elsewhere", "redirects to another address"),
    ],
)
def test_answers_that_no_repetition_changes_are_refused(
    monkeypatch: pytest.MonkeyPatch, fault: str, message: str
) -> None:
    monkeypatch.setattr(transport, "LARGEST", 1 << 20)
    with running(Fake()) as fake:
        model = raison.load(fake.base, prompt="sentiment", concurrency=1)
        before = len(fake.requests)
        fake.faults += [fault]
        with pytest.raises(RaisonError, match=message):
            raison.explain(model, TEXT, method="occlusion", progress=False)
        assert len(fake.requests) == before + 1


def test_no_server_is_an_error_of_one_line() -> None:
    with pytest.raises(ServerError, match="did not answer, tried once: ConnectError"):
        raison.load("http://127.0.0.1:9/v1", prompt="sentiment", served=raison.Served(attempts=1))


def test_nothing_is_asked_twice() -> None:
    with running(Fake()) as fake:
        first = explained(fake)
        count = len(fake.requests)
        assert explained(fake).scores == first.scores
        assert len(fake.requests) == count
        # Another model of the same server is another one, and so is one whose answers are not kept.
        explained(fake, "others")
        assert len(fake.requests) == 2 * count
        explained(fake, raison.Served(remember=False))
        assert len(fake.requests) == 3 * count


def test_an_error_with_the_status_of_success_is_not_kept() -> None:
    with running(Fake()) as fake:
        settings = raison.Served(attempts=2)
        model = raison.load(fake.base, prompt="sentiment", served=settings)
        fake.faults += ["error"] * 100
        with pytest.raises(AnswerError, match="tried 2 times: an error in place of an answer: overloaded"):
            raison.explain(model, TEXT, method="occlusion", progress=False)
        fake.faults.clear()
        assert explained(fake, settings).probabilities[1] == pytest.approx(probability(TEXT), abs=1e-9)


def test_a_stored_answer_without_choices_is_asked_again() -> None:
    with running(Fake()) as fake:
        first = explained(fake)
        with sqlite3.connect(store_path()) as store:
            store.execute("UPDATE answers SET answer = ?", (json.dumps({"error": "overloaded"}),))
        count = len(fake.requests)
        assert explained(fake).scores == first.scores
        assert len(fake.requests) == 2 * count
        assert explained(fake).scores == first.scores
        assert len(fake.requests) == 2 * count


def test_requests_are_concurrent_within_the_limit() -> None:
    with running(Fake(pause=0.2)) as fake:
        explained(fake, concurrency=4)
        assert fake.busiest == 4


def test_masked_texts_are_sent_in_the_order_of_their_beginnings() -> None:
    with running(Fake()) as fake:
        model = raison.load(fake.base, prompt="sentiment", concurrency=1)
        before = len(fake.requests)
        raison.explain(model, TEXT, method="occlusion", progress=False)
        # Two are asked before: the whole text, which says what is explained, and the empty one after it.
        prompts = [body["prompt"] for body in fake.requests[before + 1 :]]
        masked = prompts[: TEXT.count(" ") + 1]
        assert masked == sorted(masked)


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"max_requests": 12}, "max_requests is 12"),
        ({"max_tokens": 700}, "max_tokens is 700"),
        ({"max_cost": 0.001, "price_in": 1.0, "price_out": 2.0}, "max_cost is 0.001"),
    ],
)
def test_nothing_is_sent_beyond_a_limit(limits: dict[str, float], message: str) -> None:
    with running(Fake()) as fake:
        model = raison.load(fake.base, prompt="sentiment", served=raison.Served(**limits))
        meter = model.server.meter
        sent = []
        with pytest.raises(SpentError, match=f"{message}.* cost nothing when reused"):
            raison.explain(model, TEXT + " and a good one", method="kernel_shap", progress=sent.append)
        assert len(fake.requests) == meter.requests <= limits.get("max_requests", 1000)
        assert meter.tokens_in + meter.tokens_out <= limits.get("max_tokens", 10**9)
        assert meter.cost <= limits.get("max_cost", 1.0)


def test_nothing_is_promised_that_is_not_remembered() -> None:
    with running(Fake()) as fake:
        served = raison.Served(max_requests=12, remember=False)
        model = raison.load(fake.base, prompt="sentiment", served=served)
        with pytest.raises(SpentError, match="max_requests is 12.* not kept, because of remember=False"):
            raison.explain(model, TEXT + " and a good one", method="kernel_shap", progress=False)


@pytest.mark.parametrize("limit", ["max_tokens", "max_cost"])
def test_what_is_spent_exceeds_a_limit_by_the_requests_under_way_at_most(limit: str) -> None:
    """A server that counts five times as many tokens as it did when it was loaded: no estimate could know."""
    price, most, concurrency = 1e6, 4000, 4
    with running(Fake(pause=0.01)) as fake:
        limits = {limit: most if limit == "max_tokens" else float(most)}
        served = raison.Served(**limits, price_in=price, price_out=price, attempts=1)
        model = raison.load(fake.base, prompt="sentiment", served=served, concurrency=concurrency)
        fake.greed, before = 5, len(fake.requests)
        texts = [f"{TEXT} {number}" for number in range(100)]
        with pytest.raises(SpentError, match=limit):
            raison.explain(model, texts, method="occlusion", progress=False)
        each = [fake.greed * len(pieces(body["prompt"])) + 1 for body in fake.requests[before:]]
    meter = model.server.meter
    assert max(each) * concurrency < sum(each)
    assert sum(each) <= most + concurrency * max(each)
    assert meter.tokens_in + meter.tokens_out <= most + concurrency * max(each)


def test_costs_are_those_that_the_server_says() -> None:
    with running(Fake()) as fake:
        model = raison.load(fake.base, prompt="sentiment", served=raison.Served(price_in=2.0, price_out=10.0))
        meter = model.server.meter
        read = sum(body["max_tokens"] for body in fake.requests)
        assert meter.tokens_out == read
        assert meter.cost == pytest.approx((2.0 * meter.tokens_in + 10.0 * meter.tokens_out) / 1e6)


def test_settings_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InputError, match="needs the prices"):
        raison.Served(max_cost=1.0)
    with pytest.raises(InputError, match="max_requests cannot be 0"):
        raison.Served(max_requests=0)
    with pytest.raises(InputError, match="server's address"):
        raison.load("demo/sst2", served="words")
    with running(Fake()) as fake, pytest.raises(InputError, match="accepts only"):
        raison.load(fake.base, prompt="sentiment", calibrate=True)


@pytest.mark.parametrize("address", ["http://me:secret@host/v1", "http://host/v1?key=secret", "http://host/v1#secret"])
def test_credentials_in_the_address_are_refused_and_not_repeated(address: str) -> None:
    with pytest.raises(InputError) as refused:
        raison.load(address, prompt="sentiment")
    assert "secret" not in str(refused.value)


def test_a_key_goes_to_the_server_and_nowhere_else(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RAISON_API_KEY", KEY)
    told: list[str] = []
    with running(Fake()) as fake:
        model = raison.load(fake.base, prompt="sentiment")
        e = raison.explain(model, TEXT, method="occlusion", progress=False)
        assert {headers["Authorization"] for headers in fake.headers} == {f"Bearer {KEY}"}
        told += [e.to_json(), e.to_html(), repr(e), repr(model.server.meter), repr(vars(model.server))]
        told += [repr(model.server.settings)]
        told += [str(vars(part)) for part in vars(model.server).values() if hasattr(part, "__dict__")]
        # The fake server repeats the key in its errors, as some do.
        for fault in ("401", "400", "500"):
            fake.faults[:] = [fault] * 6
            with pytest.raises(RaisonError) as refused:
                raison.explain(model, f"{TEXT} {fault}", method="occlusion", progress=False)
            told += [str(refused.value), repr(refused.value), repr(refused.value.__cause__), *refused.value.__notes__]
            fake.faults.clear()
    told += [path.read_bytes().decode("latin-1") for path in tmp_path.rglob("*") if path.is_file()]
    assert not [text for text in told if KEY in text]
    assert pickle.dumps(Address(fake.base)).find(KEY.encode()) == -1


def test_openais_key_goes_to_openai_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    assert Address.read("https://api.openai.com/v1").headers() == {"Authorization": f"Bearer {KEY}"}
    for other in ("http://api.openai.com/v1", "https://api.openai.com.example.org/v1", "http://127.0.0.1:8080/v1"):
        assert Address.read(other).headers() == {}
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:8080/v1/")
    assert Address.read("http://127.0.0.1:8080/v1").headers() != {}


def test_a_store_that_cannot_be_written_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("RAISON_CACHE", str(tmp_path / "file"))
    with running(Fake()) as fake, pytest.raises(RaisonError, match="set RAISON_CACHE"):
        raison.load(fake.base, prompt="sentiment")


def test_other_tokens_than_those_wanted_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with running(Fake(top=2)) as fake:
        model = raison.load(fake.base, prompt="sentiment")
        monkeypatch.setattr(fake, "features", fake.features - {"grammar"})
        with pytest.raises(AnswerError, match="its tokens are"):
            raison.explain(model, "dull and great", method="occlusion", progress=False)


def test_an_estimate_counts_requests_and_sends_none() -> None:
    with running(Fake()) as fake:
        model = raison.load(fake.base, prompt="sentiment", served=raison.Served(price_in=1e6, price_out=0.0))
        before = len(fake.requests)
        found = estimate(model, [TEXT], ["occlusion"], ["comprehensiveness"])
        assert len(fake.requests) == before
        assert found.forwards["occlusion"] >= len(TEXT.split())
        assert found.requests >= found.forwards["occlusion"] + found.metric_forwards
        raison.explain(model, TEXT, method="occlusion", progress=False)
        sent = len(fake.requests) - before
        # A label that is not among the likeliest would take one request more, and noise takes eight.
        assert sent <= 3 * (found.forwards["occlusion"] + 2) + 8
        assert found.request_cost == pytest.approx(found.request_tokens - found.requests, rel=1e-6)


def test_the_command_line_takes_an_address_and_limits() -> None:
    with running(Fake()) as fake:
        asked = ["--model", fake.base, "--prompt", "sentiment", "--method", "occlusion"]
        shown = CliRunner().invoke(app, ["explain", TEXT, *asked, "--served", "others", "--max-requests", "100"])
        assert shown.exit_code == 0, shown.output
        assert "others at http://127.0.0.1" in shown.output
        refused = CliRunner().invoke(app, ["explain", "other words", *asked, "--max-requests", "6"])
        assert "max_requests is 6" in str(refused.exception)
        unpriced = CliRunner().invoke(app, ["explain", TEXT, *asked, "--max-cost", "1"])
        assert "price_in" in str(unpriced.exception)
        told = CliRunner().invoke(app, ["doctor", fake.base, "--prompt", "sentiment"])
        assert told.exit_code == 0, told.output
        assert "scored" in told.output
        assert "not integrated_gradients" in told.output


@pytest.mark.parametrize("top", [50, 0])
def test_stored_answers_are_not_counted_beforehand(top: int) -> None:
    with running(Fake(top=top)) as fake:
        explained(fake)
        sent = len(fake.requests)
        explained(fake, raison.Served(max_requests=1))
        assert len(fake.requests) == sent
