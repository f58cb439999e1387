"""A real server: llama.cpp's, from the package xllamacpp, with a tiny model of random weights in single precision."""

import math
import multiprocessing
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

import raison
from tests.tiny_gguf import tiny_llama, write_tiny

pytest.importorskip("xllamacpp", reason="llama.cpp's server is in the package xllamacpp (pip install xllamacpp)")
pytest.importorskip("gguf")
pytestmark = pytest.mark.server

PROMPT = raison.Prompt(
    name="tiny",
    labels={"bad": " bad", "good": " good"},
    shot="Text: {text}\nIt was{label}",
    shots=(("so dull", "bad"),),
)
TEXT = "a good film and a quiet day"
ROUNDING = 0.02
"""Of log-odds and log-probabilities: llama.cpp keeps keys and values in 16 bits."""


def serve(path: str, told: Connection, context: int) -> None:
    """Until the process ends."""
    import xllamacpp

    settings = xllamacpp.CommonParams()
    settings.model.path, settings.n_ctx, settings.n_parallel, settings.port = path, context, 2, 0
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(settings)
    told.send(server.listening_address)
    time.sleep(600)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("gguf") / "tiny.gguf"
    write_tiny(path, tiny_llama())
    return path


@contextmanager
def serving(file: Path, context: int) -> Iterator[str]:
    """The address of a server in a separate process, which reads this many tokens in two slots together."""
    spawn = multiprocessing.get_context("spawn")
    mine, theirs = spawn.Pipe()
    process = spawn.Process(target=serve, args=(str(file), theirs, context), daemon=True)
    process.start()
    try:
        assert mine.poll(60), "llama.cpp's server does not start"
        yield f"{mine.recv()}/v1"
    finally:
        process.terminate()
        process.join()


@pytest.fixture(scope="module")
def base(file: Path) -> Iterator[str]:
    with serving(file, 256) as address:
        yield address


@pytest.fixture(autouse=True)
def _own_store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RAISON_CACHE", str(tmp_path))


def test_a_classifier_agrees_with_the_same_weights_here(base: str, file: Path) -> None:
    served, here = raison.load(base, prompt=PROMPT), raison.load(str(file), prompt=PROMPT)
    assert served.reader.tier == "scored"
    assert [label.ids for label in served.reader.labels] == list(here.readout.label_ids)
    options = {"of": "log_odds", "target": "good", "progress": False}
    for text in (TEXT, "a quiet day", "good", "not a film , so dull and so long"):
        far, near = (raison.explain(model, text, method="random", **options) for model in (served, here))
        assert far.value_full == pytest.approx(near.value_full, abs=ROUNDING)
    masked = raison.explain(served, TEXT, method="occlusion", **options)
    assert masked.notes["noise"]["value"] <= ROUNDING
    assert max(map(abs, masked.scores)) > 5 * ROUNDING


def test_an_output_agrees_with_the_same_weights_here(base: str, file: Path) -> None:
    served, here = raison.load(base), raison.load(str(file))
    options = {"output": " good day", "method": "random", "of": "log_probability", "progress": False}
    far, near = (raison.explain(model, TEXT, **options) for model in (served, here))
    assert [token.id for token in far.tokens] == [token.id for token in near.tokens]
    for one, other in zip(far.tokens, near.tokens, strict=True):
        assert math.log(one.probability) == pytest.approx(math.log(other.probability), abs=ROUNDING)
    assert raison.explain(served, TEXT, max_new_tokens=3, method="random", progress=False).output


@pytest.mark.parametrize("earlier", [False, True])
def test_a_contrast_agrees_with_the_same_weights_here(base: str, file: Path, earlier: bool) -> None:
    served, here = raison.load(base), raison.load(str(file))
    output = raison.explain(here, TEXT, output=" good day", method="random", progress=False)
    own = {token.id for token in output.tokens}
    other = next(number for number in here.tokenizer("film and quiet")["input_ids"] if number not in own)
    options = {"output": " good day", "contrast": other, "of": "margin", "earlier": earlier, "removal": "delete"}
    far, near = (raison.explain(model, TEXT, method="occlusion", progress=False, **options) for model in (served, here))
    assert [len(row) for row in far.scores] == [len(row) for row in near.scores]
    assert len(far.scores[-1]) == len(far.scores[0]) + earlier * (len(output.tokens) - 1)
    for one, their in zip(far.tokens, near.tokens, strict=True):
        assert one.value_full == pytest.approx(their.value_full, abs=ROUNDING)
