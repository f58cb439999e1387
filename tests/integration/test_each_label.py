"""target="each": every label from a threshold on has an explanation of its own, from evaluations that all share."""

import json
import re
from collections.abc import Callable
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForMaskedLM, AutoModelForTokenClassification
from typer.testing import CliRunner

import raison
from raison.cli import app
from raison.core.capabilities.embeddings import WordEmbeddings
from raison.core.errors import DataError, InputError
from raison.core.inputs.rationale import Span
from raison.core.model import LanguageModel
from raison.core.results.explanation import Explanation
from raison.core.results.scores import Comparison
from raison.core.targets.target import Target
from raison.explaining.each_prediction import each_target
from raison.explaining.settings import Settings
from raison.jobs.folder import COMPARISON, write_marker
from raison.models.adapters.classifier import Classifier
from raison.report.explanations.several import are_targets
from raison.report.explanations.terminal import targets_text
from raison.report.style.terminal_text import plain
from raison.runs.run import read_run
from raison.runs.statistics import contrasts
from raison.runs.table import comparison
from tests import functions
from tests.functions import labels
from tests.tiny import TAGS, build, build_at_places

NAMES = ("anger", "joy", "love", "fear")
TEXTS = ["the film is a quiet pleasure", "a dull plot , but the acting is good", "dull"]
LOW = 0.3


def tagged(family: str = "bert") -> Classifier:
    """A model of four labels whose probabilities lie on both sides of 0.3."""
    loaded = raison.load(*build(family, NAMES, "multi_label_classification"))
    assert isinstance(loaded, Classifier)
    return loaded


@pytest.mark.parametrize("family", ["bert", "gpt2", "bart"])
@pytest.mark.parametrize("method", ["occlusion", "kernel_shap(samples=32)", "integrated_gradients", "partition_shap"])
def test_each_label_is_explained_as_if_it_were_asked_for_alone(family: str, method: str) -> None:
    model = tagged(family)
    each = raison.explain(model, TEXTS, method, target="each", threshold=LOW, progress=False)
    assert len(each) == len(TEXTS)
    predicted = raison.explain(model, TEXTS, "random", target=NAMES[0], progress=False)
    for text, of_text, shares in zip(TEXTS, each, (e.probabilities for e in predicted), strict=True):
        order = sorted(range(len(NAMES)), key=lambda label: -shares[label])
        assert [e.target for e in of_text] == [NAMES[label] for label in order if shares[label] >= LOW]
        assert {e.threshold for e in of_text} <= {LOW}
        for e in of_text:
            alone = raison.explain(model, text, method, target=e.target)
            assert e.scores == pytest.approx(alone.scores, abs=1e-5)
            assert (e.value_full, e.value_empty) == pytest.approx((alone.value_full, alone.value_empty), abs=1e-6)
            assert (e.evaluations, e.gradients, e.units) == (alone.evaluations, alone.gradients, alone.units)


@pytest.mark.parametrize("method", ["occlusion", "kernel_shap(samples=16)", "shapley_exact"])
def test_perturbed_texts_are_run_once_for_all_labels(method: str) -> None:
    model, run = tagged(), [0]
    model.model.register_forward_pre_hook(
        lambda _module, _args, kwargs: run.__setitem__(0, run[0] + len(kwargs["input_ids"])), with_kwargs=True
    )
    raison.explain(model, TEXTS[0], "random")  # what a model's first explanation tries
    run[0] = 0
    [first, *others] = raison.explain(model, TEXTS[0], method, target="each", threshold=0.0)
    together, run[0] = run[0], 0
    raison.explain(model, TEXTS[0], method, target=first.target)
    assert len(others) == len(NAMES) - 1
    assert together == run[0]


def filling() -> tuple[LanguageModel, str, float]:
    model = raison.load(*build_at_places("bert", AutoModelForMaskedLM))
    return model, f"The {model.tokenizer.mask_token} plot is a {model.tokenizer.mask_token} story.", 0.0


SEVERAL: dict[str, Callable[[], tuple[LanguageModel, str, float]]] = {
    "labels": lambda: (tagged(), TEXTS[1], 0.0),
    "labels of a decoder": lambda: (tagged("gpt2"), TEXTS[1], 0.0),
    "entities": lambda: (raison.load(*build_at_places("bert", AutoModelForTokenClassification, TAGS)), TEXTS[1], 0.0),
    "masked words": filling,
}
"""Models with several targets in a text, the text, and a threshold that all of them reach."""


@dataclass
class Rows:
    """Rows of tokens that went forward and back through a model."""

    graphs: bool = True
    """Only what goes forward with gradients counts."""
    forward: int = 0
    back: int = 0

    def watch(self, model: LanguageModel, monkeypatch: pytest.MonkeyPatch) -> None:
        def run(_module: object, args: tuple[object, ...], kwargs: dict[str, object]) -> None:
            given = [one for one in (*args, *kwargs.values()) if isinstance(one, torch.Tensor)]
            self.forward += max(map(len, given)) if torch.is_grad_enabled() or not self.graphs else 0

        plain = torch.autograd.grad

        def gone_back(*args: object, **settings: object) -> tuple[torch.Tensor, ...]:
            found: tuple[torch.Tensor, ...] = plain(*args, **settings)  # type: ignore[arg-type]
            self.back += found[0].shape[0]
            return found

        model.model.base_model.register_forward_pre_hook(run, with_kwargs=True)  # type: ignore[attr-defined]
        monkeypatch.setattr(torch.autograd, "grad", gone_back)

    def of(self, call: Callable[[], list[Explanation]]) -> tuple[list[Explanation], int, int]:
        self.forward = self.back = 0
        found = call()
        return found, self.forward, self.back


@pytest.mark.parametrize(
    "method", ["saliency", "integrated_gradients", "smooth_grad(samples=3)", "deep_lift", "attn_lrp"]
)
@pytest.mark.parametrize("kind", SEVERAL)
def test_gradients_of_all_targets_share_the_forward_passes_of_one(
    kind: str, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, text, threshold = SEVERAL[kind]()
    targets = each_target(model, [text], Settings(), threshold)[0]
    raison.explain(model, text, method, target=targets[0])  # what a model's first gradients try
    rows = Rows()
    rows.watch(model, monkeypatch)
    each, forward, back = rows.of(lambda: raison.explain(model, text, method, target="each", threshold=threshold))
    assert len(each) == len(targets) > 1
    for e, target in zip(each, targets, strict=True):
        [alone], own, once = rows.of(lambda target=target: [raison.explain(model, text, method, target=target)])
        assert (forward, back) == (own, len(targets) * once)
        assert e.scores == pytest.approx(alone.scores, abs=1e-6)
        assert (e.evaluations, e.gradients, e.target) == (alone.evaluations, alone.gradients, alone.target)


@pytest.mark.parametrize(
    "method",
    ["attention_average", "attention_rollout", "attention_flow", "generic_attention", "alti", "globenc", "decompx"],
)
@pytest.mark.parametrize("kind", ["bert", "gpt2"])
def test_attention_of_a_text_is_computed_once_for_all_labels(
    kind: str, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tagged(kind)
    alone = zip(*(raison.explain(model, TEXTS, method, target=label) for label in NAMES), strict=True)
    rows = Rows(graphs=False)
    rows.watch(model, monkeypatch)
    _, one, once = rows.of(lambda: raison.explain(model, TEXTS, method, target=NAMES[0]))
    _, predicting, _ = rows.of(lambda: raison.explain(model, TEXTS, "random", target=NAMES[0]))
    _, each_predicting, _ = rows.of(lambda: raison.explain(model, TEXTS, "random", target="each", threshold=0.0))
    each, forward, back = rows.of(lambda: raison.explain(model, TEXTS, method, target="each", threshold=0.0))
    assert forward - each_predicting == one - predicting
    assert back == len(NAMES) * once
    for found, expected in zip(each, alone, strict=True):
        by_target = {e.target: e for e in found}
        for own in expected:
            assert by_target[own.target].scores == pytest.approx(own.scores, abs=1e-6)
            assert (by_target[own.target].evaluations, by_target[own.target].gradients) == (
                own.evaluations,
                own.gradients,
            )


def test_paths_that_differ_share_no_pass() -> None:
    """Rows of the same text, each at other embeddings: their gradients are those of each row alone."""
    model, target = tagged(), Target(torch.tensor([0, 1, 0]), None, "logit")
    encoding = model.encode([TEXTS[0]], "word").select([0, 0, 0])
    given = model.ask(WordEmbeddings)
    embeds = given.embed(encoding)
    one = torch.ones(1, dtype=torch.float64)

    def path(text: int, positions: torch.Tensor) -> torch.Tensor:
        return (embeds[text] * (1 + 0.5 * (text == 2))).expand(len(positions), -1, -1)

    gradients, values = given.path_gradients(encoding, path, one, one, target)
    for text in range(3):
        own, value = given.path_gradients(
            encoding.select([text]),
            lambda _, at, text=text: path(text, at),
            one,
            one,
            target.rows(torch.tensor([text])),
        )
        torch.testing.assert_close(gradients[text], own[0], rtol=1e-5, atol=1e-7)
        assert float(values[text]) == pytest.approx(float(value), rel=1e-6)
    assert float(values[0]) != pytest.approx(float(values[2]), rel=1e-3)


def test_a_function_is_asked_once_for_each_text() -> None:
    asked: list[str] = []

    def counting(texts: list[str]) -> object:
        asked.extend(texts)
        return labels(texts)

    model = raison.load(counting, classes=["some", "more"], multi_label=True)
    raison.explain(model, "not a good film", "random")
    asked.clear()
    es = raison.explain(model, "not a good film", "occlusion", target="each", threshold=0.0)
    assert len(es) == 2
    assert len(asked) == 6  # the whole, without each of the four words, and nothing


def test_a_text_without_a_label_has_an_empty_list() -> None:
    model = tagged()
    assert raison.explain(model, TEXTS, "occlusion", target="each", threshold=1.0, progress=False) == [[], [], []]
    assert raison.explain(model, TEXTS[0], "occlusion", target="each", threshold=1.0) == []


def test_where_there_are_no_labels_each_is_refused_in_one_line() -> None:
    classes, number = (raison.load(*build("bert", names)) for names in (NAMES, ("rating",)))
    for model, said in ((classes, "outputs one of 4 classes"), (number, "outputs one number")):
        with pytest.raises(InputError, match=said):
            raison.explain(model, TEXTS[0], "occlusion", target="each")
    with pytest.raises(InputError, match="threshold=1.5 is not a probability"):
        raison.explain(tagged(), TEXTS[0], "occlusion", target="each", threshold=1.5)
    with pytest.raises(InputError, match="add target='each'"):
        raison.explain(tagged(), TEXTS[0], "occlusion", target="joy", threshold=0.2)
    with pytest.raises(InputError, match="add target='each'"):
        raison.explain(tagged(), ("a dull plot", ["a story", "a film"]), "occlusion", threshold=0.2)


def test_scores_are_told_for_all_labels_and_for_each() -> None:
    model = tagged()
    es = raison.explain(model, TEXTS, "occlusion", target="each", threshold=LOW, progress=False)
    scores = raison.evaluate(model, es, ["comprehensiveness", "sufficiency"], progress=False)
    every = [e for of_text in es for e in of_text]
    assert set(scores.by_target) == {e.target for e in every}
    for name, own in scores.by_target.items():
        alone = raison.evaluate(model, [e for e in every if e.target == name], ["comprehensiveness"], progress=False)
        assert own["comprehensiveness"].values == pytest.approx(alone["comprehensiveness"].values, abs=1e-6)
    assert sum(own["sufficiency"].summary.count for own in scores.by_target.values()) == len(every)


def test_the_rationales_of_a_text_are_those_of_each_of_its_labels() -> None:
    model = raison.load(functions.labels, classes=["x", "y"], multi_label=True)
    marks = [[(Span(start, start + 3),)] for start in range(len(functions.TEXTS))]
    es = raison.explain(model, list(functions.TEXTS), "occlusion", target="each", threshold=LOW, progress=False)
    every = [(e, mark) for of_text, mark in zip(es, marks, strict=True) for e in of_text]
    assert len({len(of_text) for of_text in es}) > 1, "texts have different numbers of labels"
    known = raison.evaluate(
        model, [e for e, _ in every], "auroc", rationales=[mark for _, mark in every], progress=False
    )
    assert raison.evaluate(model, es, "auroc", rationales=marks, progress=False)["auroc"] == known["auroc"]
    with pytest.raises(InputError, match="entries of rationales"):
        raison.evaluate(model, es, "auroc", rationales=marks[1:], progress=False)


def test_a_comparison_has_a_table_for_each_label_and_goes_on_in_its_folder(tmp_path: Path) -> None:
    model = tagged()

    def compare(**more: object) -> raison.Comparison:
        return raison.compare(
            model, TEXTS, "occlusion", "comprehensiveness", target="each", threshold=LOW, progress=False, **more
        )

    table = compare(out=tmp_path / "run")
    es = raison.explain(model, TEXTS, "occlusion", target="each", threshold=LOW, progress=False)
    judged = raison.evaluate(model, es, "comprehensiveness", progress=False)
    assert table.texts == sum(map(len, es))
    assert table.settings["threshold"] == LOW
    assert table["occlusion"]["comprehensiveness"].summary.mean == pytest.approx(
        judged["comprehensiveness"].summary.mean, abs=1e-6
    )
    assert set(table.by_target) == set(judged.by_target)
    for name, own in table.by_target.items():
        assert [row.method for row in own.rows] == ["occlusion", "random"]
        mean = judged.by_target[name]["comprehensiveness"].summary.mean
        assert own["occlusion"]["comprehensiveness"].summary.mean == pytest.approx(mean, abs=1e-6)
    assert f"{table.texts} predictions in texts from 30 % on" in " ".join(str(table).split())
    assert compare(out=tmp_path / "run").to_dict() == table.to_dict()
    with pytest.raises(InputError, match="no prediction reaches 100 % in any text"):
        raison.compare(model, TEXTS, "occlusion", target="each", threshold=1.0)


@pytest.mark.parametrize("method", ["partition_shap", "coarse_to_fine", "solvex", "kernel_shap(samples=8)"])
def test_no_masked_text_is_run_again_for_another_label(method: str) -> None:
    """Nor in a later round of a method whose rounds depend on what it found."""
    model = tagged()
    rows: list[bytes] = []

    def count(_: object, args: object, kwargs: dict[str, torch.Tensor]) -> None:
        rows.extend(row.numpy().tobytes() for row in kwargs["input_ids"])

    raison.explain(model, TEXTS[1], "random", target="each", threshold=0.0, progress=False)
    hook = model.core.register_forward_pre_hook(count, with_kwargs=True)
    each = raison.explain(model, TEXTS[1], method, target="each", threshold=0.0, removal="mask", progress=False)
    hook.remove()
    assert len(each) == len(NAMES)
    # The whole text is read first, to know what is predicted.
    assert len(rows) - len(set(rows)) <= 1
    for e in each:
        alone = raison.explain(model, TEXTS[1], method, target=e.target, removal="mask", progress=False)
        assert e.scores == pytest.approx(alone.scores, abs=1e-5)
        assert e.evaluations == alone.evaluations


def test_labels_that_say_the_same_are_no_further_evidence(tmp_path: Path) -> None:
    """The texts are independent, their labels are not: intervals and tests are those of one label."""
    texts = [f"{word} film number {length}" + " dull" * (length % 3) for length, word in enumerate("abcdefghij")]

    def compared(count: int, **options: Any) -> Comparison:
        def alike(given: list[str]) -> list[list[float]]:
            return [[1 / (2 + len(text.replace("film", "")) % 7)] * count for text in given]

        model = raison.load(alike, classes=[f"label {number}" for number in range(count)], multi_label=True)
        metrics = ["comprehensiveness", "sufficiency"]
        settings: Any = {"target": "each", "threshold": 0.0, "progress": False} | options
        return raison.compare(model, texts, "occlusion", metrics, **settings)

    one, several = compared(1), compared(4, out=tmp_path / "run")
    assert several.texts == 4 * one.texts
    for row in one.rows:
        for metric in ("comprehensiveness", "sufficiency"):
            own, others = row[metric].summary, several[row.method][metric].summary
            assert (others.mean, others.low, others.high) == pytest.approx((own.mean, own.low, own.high), abs=1e-12)
            assert others.count == own.count == len(texts)
    for metric, gaps in contrasts(one).items():
        for alone, together in zip(gaps, contrasts(several)[metric], strict=True):
            assert astuple(together.difference) == pytest.approx(astuple(alone.difference), abs=1e-12, nan_ok=True)
            assert together.p == pytest.approx(alone.p, abs=1e-12, nan_ok=True)
    assert comparison(read_run(tmp_path / "run")).to_dict() == several.to_dict()
    assert Comparison.from_json(several.to_json()).to_dict() == several.to_dict()
    write_marker(tmp_path / "run", COMPARISON, dict(read_run(tmp_path / "run").header.raw) | {"text_numbers": [0]})
    with pytest.raises(DataError, match="it has 40 texts, and text_numbers of 1"):
        read_run(tmp_path / "run")


def test_the_views_show_labels_and_units_as_a_matrix(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    es = raison.explain(tagged(), TEXTS[0], "occlusion", target="each", threshold=LOW)
    assert are_targets(es)
    shown = plain(targets_text(es))
    head, *rows = shown.split("\n\n")[1].splitlines()
    assert all(f"{e.target} {100 * e.probabilities[NAMES.index(e.target)]:.1f} %" in head for e in es)
    assert [row.split()[0] for row in rows] == [unit.text for unit in es[0].units]
    assert [[float(cell) for cell in row.split()[1:]] for row in rows] == [
        pytest.approx([e.scores[unit] for e in es], abs=1e-3) for unit in range(len(es[0].units))
    ]
    raison.show(es)
    assert "3 targets" in capsys.readouterr().out
    page = raison.save(es, tmp_path / "each.html").read_text(encoding="utf-8")
    assert re.findall(r'<article class="raison" id="(explanation-\d)"', page) == [f"explanation-{n}" for n in (1, 2, 3)]
    assert page.count('<td class="cell"') == 3 * len(es[0].units)
    assert not any("hidden" in tag for tag in re.findall(r"<article[^>]*>", page))  # all are there without the script
    written = json.loads(raison.save(es, tmp_path / "each.json").read_text(encoding="utf-8"))
    assert [Explanation.from_dict(one) for one in written] == es
    with pytest.raises(InputError, match=r"\.html or \.json"):
        raison.save(es, tmp_path / "each.svg")
    with pytest.raises(DataError, match="threshold"):
        Explanation.from_dict(written[0] | {"notes": {"threshold": "half"}})


def test_the_command_line_explains_each_label(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tagged()
    monkeypatch.setattr("raison.studies.plans.load_entry", lambda _entry: model)
    call = ["explain", TEXTS[0], "--model", "tiny", "--target", "each", "-M", "occlusion"]
    done = CliRunner().invoke(app, [*call, "--threshold", str(LOW), "--json", "--html", str(tmp_path / "e.html")])
    assert done.exit_code == 0, done.output
    assert [e["target"] for e in json.loads(done.stdout)] == ["fear", "love", "joy"]
    assert (tmp_path / "e.html").exists()
    none = CliRunner().invoke(app, [*call, "--threshold", "1"])
    assert none.exit_code == 0
    assert "no prediction in the text reaches the threshold" in none.stderr


def test_the_command_line_estimates_a_comparison_of_each_label(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tagged()
    monkeypatch.setattr("raison.studies.plans.load_entry", lambda _entry: model)
    data = tmp_path / "texts.csv"
    data.write_text("text\n" + "".join(f'"{text}"\n' for text in TEXTS), encoding="utf-8")
    each = ["--target", "each", "--threshold", str(LOW), "--methods", "saliency"]
    call = ["--data", str(data), "--model", "tiny", *each]
    estimated = CliRunner().invoke(app, ["estimate", *call, "--json"], catch_exceptions=False)
    compared = CliRunner().invoke(app, ["compare", *call, "--json"], catch_exceptions=False)
    cost, table = json.loads(estimated.stdout), json.loads(compared.stdout)
    [saliency, _] = table["rows"]
    assert cost["texts"] == table["texts"] > len(TEXTS)
    assert cost["backwards"]["saliency"] == table["texts"] * saliency["gradients"]["mean"]
    shown = CliRunner().invoke(app, ["estimate", *call], catch_exceptions=False)
    assert f"{table['texts']} predictions, " in " ".join(shown.stdout.split())


@pytest.mark.parametrize("threshold", [0.07, 0.3, 0.55, 0.99])
def test_a_probability_that_is_the_threshold_reaches_it(threshold: float) -> None:
    """A function's probabilities have been logits in between, which rounds them."""
    model = raison.load(lambda texts: [[threshold, 0.01] for _ in texts], classes=["a", "b"], multi_label=True)
    [only] = raison.explain(model, "a quiet film", "random", target="each", threshold=threshold)
    assert only.target == "a"
