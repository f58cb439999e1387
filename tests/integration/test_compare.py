"""A comparison that is killed and run again equals one that was not."""

import json
import signal
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner

import raison
from raison.cli import app
from raison.core.errors import DataError, InputError, TextTooLongError, UnfinishedError, UnknownNameError
from raison.core.results.scores import Comparison
from raison.jobs import workers
from raison.jobs.engine import Shard, Sharing
from raison.methods import CATALOGUE
from raison.models.adapters.classifier import Classifier
from tests.apart import started
from tests.forks import forked as forked
from tests.patience import PATIENCE
from tests.tiny import TINY

WORDS = "the film is a dull and quiet pleasure but not good for its loud end".split()
TEXTS = [" ".join(WORDS[i % 5 : i % 5 + 3 + i % 9]) for i in range(50)]
METHODS = ["kernel_shap(samples=20)", "occlusion", "input_x_gradient"]


@pytest.fixture(scope="module")
def model() -> Classifier:
    return raison.load(*TINY["bert"]())


@pytest.fixture(scope="module")
def whole(model: Classifier) -> raison.Comparison:
    return raison.compare(model, TEXTS, METHODS, progress=False)


def values(comparison: raison.Comparison) -> dict:
    """Everything but the seconds."""
    return {
        row.method: [row.evaluations, row.gradients, *(scores.values for scores in row.metrics)]
        for row in comparison.rows
    }


def test_random_row_and_intervals(whole: raison.Comparison) -> None:
    assert [row.method for row in whole.rows] == [*METHODS, "random"]
    for row in whole.rows:
        for scores in row.metrics:
            assert scores.summary.low <= scores.summary.mean <= scores.summary.high
            assert scores.summary.count == len(TEXTS)


def test_equals_explain_then_evaluate(model: Classifier, whole: raison.Comparison) -> None:
    explanations = raison.explain(model, TEXTS, "occlusion")
    alone = raison.evaluate(model, explanations, ["comprehensiveness", "log_odds"])
    for metric in ("comprehensiveness", "log_odds"):
        assert alone[metric].values == pytest.approx(whole["occlusion"][metric].values, abs=1e-4)


def test_interrupted_after_any_chunk_then_resumed(model: Classifier, whole: raison.Comparison, tmp_path: Path) -> None:
    for stop_after in (1, 2):
        seen = 0

        def interrupt(count: int, limit: int = stop_after) -> None:
            nonlocal seen
            seen += 1
            if seen == limit:
                raise KeyboardInterrupt

        out = tmp_path / str(stop_after)
        with pytest.raises(KeyboardInterrupt):
            raison.compare(model, TEXTS, METHODS, out=out, progress=interrupt)
        lines = (out / "records.jsonl").read_text().splitlines()
        assert 0 < len(lines) < len(TEXTS) * 4
        resumed = raison.compare(model, TEXTS, METHODS, out=out, progress=False)
        assert values(resumed) == values(whole)


def test_a_line_that_was_cut_is_done_again(model: Classifier, whole: raison.Comparison, tmp_path: Path) -> None:
    raison.compare(model, TEXTS, METHODS, out=tmp_path, progress=False)
    path = tmp_path / "records.jsonl"
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * 0.6)])
    assert values(raison.compare(model, TEXTS, METHODS, out=tmp_path, progress=False)) == values(whole)


def test_killed_with_signal_9_then_resumed(whole: raison.Comparison, tmp_path: Path) -> None:
    process = started(partial(compared, tmp_path))
    records = tmp_path / "records.jsonl"
    deadline = time.monotonic() + PATIENCE
    while not (records.exists() and records.stat().st_size) and process.is_alive():
        assert time.monotonic() < deadline
        time.sleep(0.005)
    process.kill()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert values(compared(tmp_path)) == values(whole)


def compared(out: Path) -> raison.Comparison:
    return raison.compare(raison.load(*TINY["bert"]()), TEXTS, METHODS, out=out, progress=False)


def test_another_run_in_the_same_folder_is_refused(model: Classifier, tmp_path: Path) -> None:
    raison.compare(model, TEXTS[:3], ["occlusion"], out=tmp_path, progress=False)
    with pytest.raises(DataError, match="another run .*settings"):
        raison.compare(model, TEXTS[:3], ["occlusion"], out=tmp_path, seed=1, progress=False)


def test_mistakes_are_refused_before_anything_runs(model: Classifier, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Did you mean 'occlusion'"):
        raison.compare(model, TEXTS, ["oclusion"], out=tmp_path)
    with pytest.raises(InputError, match="Did you mean 'sufficiency'"):
        raison.compare(model, TEXTS, ["occlusion"], ["suficiency"], out=tmp_path)
    with pytest.raises(TextTooLongError, match="text 51 of 51: the text has .* reads at most 128"):
        raison.compare(model, [*TEXTS, "good " * 200], ["occlusion"], out=tmp_path)
    assert not list(tmp_path.iterdir())


def test_equal_perturbations_are_evaluated_once(model: Classifier) -> None:
    """Occlusion twice costs the model as much as once: the second finds every keep in the first's."""

    def rows(methods: list[str]) -> int:
        counted: list[int] = []
        handle = model.embedding_table.register_forward_hook(lambda _m, args, _o: counted.append(len(args[0])))
        try:
            raison.compare(model, TEXTS[:5], methods, ["comprehensiveness"], removal="mask", progress=False)
        finally:
            handle.remove()
        return sum(counted)

    enumerated = "kernel_shap(samples=1024)"
    texts = [len(text.split()) for text in TEXTS[:5]]
    assert max(texts) <= 7, "few enough words to be enumerated"
    # What is tried once of a model, such as whether equal calls agree, is counted for neither.
    rows([enumerated])
    both, shap_alone = rows([enumerated, "occlusion"]), rows([enumerated])
    # Occlusion's keeps are among the enumerated ones; what it adds are the deletions of its own top words.
    assert both - shap_alone <= 5


def test_a_bound_on_units_is_known_before_anything_runs(model: Classifier, tmp_path: Path) -> None:
    texts = ["a quiet film", "the film is a dull and quiet pleasure"]
    with pytest.raises(InputError, match=r"text 2 of 2 has 8 units, and shapley_exact\(limit=5\) allows at most 5"):
        raison.compare(model, texts, ["shapley_exact(limit=5)"], out=tmp_path / "out", progress=False)
    assert not (tmp_path / "out").exists()


def test_all_methods_are_those_that_the_model_and_the_texts_allow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others are named with what they lack; here the catalogue is cut down to some of each kind."""
    names = ("occlusion", "random", "saliency", "shapley_exact", "sp_pi", "ivra")
    monkeypatch.setattr(CATALOGUE, "names", names)
    loaded, tokenizer = TINY["bert"]()
    loaded.save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    (tmp_path / "data.tsv").write_text(f"{' '.join(WORDS)} {' '.join(WORDS)}\t1\na quiet film\t0\n")
    said = ["--model", str(tmp_path / "model"), "--data", str(tmp_path / "data.tsv"), "--methods", "all", "--json"]
    monkeypatch.setenv("RAISON_CACHE", str(tmp_path))
    found = CliRunner().invoke(app, ["compare", *said, "--metrics", "gini"], catch_exceptions=False)
    table = json.loads(found.stdout)
    assert [row["method"] for row in table["rows"]] == ["occlusion", "random", "saliency"]
    lines = [line for line in found.stderr.splitlines() if line.startswith("left out: ")]
    assert len(lines) == 3
    for name, why in (("shapley_exact", "30 units"), ("sp_pi", "step_logits"), ("ivra", "raison train ivra")):
        assert any(name in line and why in line for line in lines), (name, lines)
    estimated = CliRunner().invoke(app, ["estimate", *said], catch_exceptions=False)
    assert list(json.loads(estimated.stdout)["forwards"]) == ["occlusion", "random", "saliency"]


def test_a_split_of_a_named_data_set_is_read_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sst2_glue").mkdir()
    (tmp_path / "sst2_glue" / "sentiment-dev.tsv").write_text("a quiet film\t1\na dull plot\t0\n")
    monkeypatch.setenv("RAISON_DATA", str(tmp_path))
    loaded, tokenizer = TINY["bert"]()
    loaded.save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    said = ["compare", "--model", str(tmp_path / "model"), "--methods", "saliency", "--metrics", "gini", "--json"]
    found = CliRunner().invoke(app, [*said, "--data", "sst2:dev"], catch_exceptions=False)
    assert json.loads(found.stdout)["texts"] == 2
    with pytest.raises(UnknownNameError, match="unknown split of sst2 'devel'. Did you mean 'dev'"):
        CliRunner().invoke(app, [*said, "--data", "sst2:devel"], catch_exceptions=False)


@pytest.mark.usefixtures("forked")
def test_two_processes_give_the_table_of_one(tmp_path: Path) -> None:
    """Each loads the model by itself; what judges all texts together comes last, in the first process."""
    network, tokenizer = TINY["bert"]()
    network.save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    loading = partial(raison.load, tmp_path / "model")
    asked = (TEXTS[:20], ["occlusion"], ["sufficiency", "consistency(batch=8)"])
    alone = raison.compare(loading(), *asked, progress=False)
    heard: list[int] = []
    shared = raison.compare(
        loading(), *asked, out=tmp_path / "out", progress=heard.append, sharing=Sharing(workers=2), load=loading
    )
    assert values(shared) == values(alone)
    assert sum(heard) == 20
    assert sorted(path.name for path in (tmp_path / "out").glob("records*")) == ["records-1.jsonl", "records-2.jsonl"]


@pytest.mark.usefixtures("forked")
def test_what_the_callers_progress_raises_ends_the_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "PROMPT", 0.0)
    network, tokenizer = TINY["bert"]()
    network.save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    loading, out = partial(raison.load, tmp_path / "model"), tmp_path / "out"

    def fails(_count: int) -> None:
        raise LookupError("no longer wanted")

    texts, asked = TEXTS[:20] * 4, ("kernel_shap(samples=60)", "sufficiency")
    with pytest.raises(LookupError, match="no longer wanted"):
        raison.compare(
            loading(),
            texts,
            *asked,
            out=out,
            progress=fails,
            sharing=Sharing(workers=2),
            load=loading,
        )
    written = sum(len(path.read_bytes().splitlines()) for path in out.glob("records*"))
    resumed = raison.compare(loading(), texts, *asked, out=out, progress=False)
    assert 0 < written <= sum(len(path.read_bytes().splitlines()) for path in out.glob("records*"))
    assert len(resumed["kernel_shap(samples=60)"]["sufficiency"].values) == len(texts)


@pytest.mark.usefixtures("forked")
def test_what_the_callers_function_raises_in_a_process_is_told(tmp_path: Path, model: Classifier) -> None:
    """With its name, as in this process; it is no mistake of the library's."""
    with pytest.raises(DataError) as caught:
        raison.compare(
            model,
            TEXTS[:4],
            "occlusion",
            out=tmp_path / "out",
            progress=False,
            sharing=Sharing(workers=2),
            load=partial(int, "no model"),
        )
    reason = "ValueError: invalid literal for int() with base 10: 'no model'."
    assert str(caught.value) == f"{reason} Finished work is kept: start again to resume it."


def test_repeated_texts_are_told(model: Classifier) -> None:
    """With its own target, a text is another question; other repeats count as if they were independent."""

    def told(texts: list[str], **settings: object) -> list[str]:
        found = raison.compare(model, texts, "occlusion", progress=False, **settings)
        repeats = [caution for caution in found.cautions if "repeat" in caution]
        assert all(caution in " ".join(str(found).split()) for caution in repeats)
        return repeats

    assert not told(TEXTS[:3])
    caution = "2 of 5 texts repeat others: n and the intervals count them as if they were independent"
    assert told([*TEXTS[:3], TEXTS[0], TEXTS[0]]) == [caution]
    assert not told([TEXTS[0]] * 2, target=[0, 1])


def test_a_share_says_what_is_unfinished(model: Classifier, tmp_path: Path) -> None:
    def share(number: int) -> Comparison:
        settings = {"out": tmp_path / "run", "progress": False}
        return raison.compare(model, TEXTS[:3], "occlusion", sharing=Sharing(Shard(number, 4)), **settings)

    with pytest.raises(UnfinishedError, match="finish the run first"):
        share(4)
    for number in (3, 2, 1):
        with suppress(UnfinishedError):
            found = share(number)
    assert found.texts == 3
    assert not any("unfinished" in caution for caution in found.cautions)
    records = tmp_path / "run" / "records.jsonl"
    (path,) = [records] if records.exists() else (tmp_path / "run").glob("records*.jsonl")
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(line for line in lines if json.loads(line)["text"] != 2))
    told = [caution for caution in share(4).cautions if "unfinished" in caution]
    assert told == ["unfinished: 2 of 3 texts. The table covers these; do the other shares"]


def test_workers_need_a_folder_to_meet_in(model: Classifier) -> None:
    with pytest.raises(InputError, match="need a common folder"):
        raison.compare(model, TEXTS[:2], ["occlusion"], progress=False, sharing=Sharing(workers=2))
    with pytest.raises(InputError, match="give only one of them"):
        Sharing(Shard(1, 2), workers=2)
