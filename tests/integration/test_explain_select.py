"""The front door's select=: a metric chooses each text's map among those that the method offers."""

import json
import sys
from pathlib import Path

import pytest

import raison
from raison.core.errors import InputError, UnknownNameError, UnsupportedError
from raison.models.adapters.classifier import Classifier
from raison.models.adapters.writing.generator import Generator
from raison.runs.run import read_run
from tests.integration.test_compare import TEXTS
from tests.tiny import TINY, build_language_model

DRAWS = 5
METHOD = f"random(draws={DRAWS})"


@pytest.fixture
def model() -> Classifier:
    return raison.load(*TINY["bert"]())


def test_the_best_map_is_returned_with_what_choosing_took(model: Classifier) -> None:
    e = raison.explain(model, TEXTS[7], METHOD, select="comprehensiveness")
    values = e.notes["candidate_values"]
    assert (e.notes["selected_by"], e.notes["candidates"], len(values)) == ("comprehensiveness", DRAWS, DRAWS)
    assert len(set(values)) > 1
    scored = raison.evaluate(model, e, ["comprehensiveness"], progress=False)["comprehensiveness"]
    assert scored.values[0] == pytest.approx(max(values), abs=1e-6)
    # Random scores take no pass, and each map is looked at by one keep; equal ones count once.
    assert 2 <= e.evaluations <= DRAWS
    lowest = raison.explain(model, TEXTS[7], METHOD, select=raison.metrics.LogOdds(share=0.4))
    assert lowest.notes["selected_by"] == "log_odds(share=0.4)"
    scored = raison.evaluate(model, lowest, ["log_odds(share=0.4)"], progress=False)["log_odds(share=0.4)"]
    assert scored.values[0] == pytest.approx(min(lowest.notes["candidate_values"]), abs=1e-6)


def test_without_select_nothing_is_chosen(model: Classifier) -> None:
    e = raison.explain(model, TEXTS[7], METHOD)
    assert "selected_by" not in e.notes
    assert e.scores == raison.explain(model, TEXTS[7], "random").scores


def test_a_list_is_chosen_text_by_text_as_in_a_comparison(model: Classifier, tmp_path: Path) -> None:
    texts = TEXTS[:12]
    explained = raison.explain(model, texts, METHOD, select="sufficiency", seed=2, progress=False)
    raison.compare(model, texts, [METHOD], ["log_odds"], select=["sufficiency"], seed=2, out=tmp_path, progress=False)
    compared = read_run(tmp_path).explanations(f"{METHOD} by sufficiency", 2)
    for e, other, text in zip(explained, compared, texts, strict=True):
        assert e.text == text
        assert e.scores == other.scores
        assert e.evaluations == other.evaluations
        assert e.notes["candidate_values"] == pytest.approx(other.notes["candidate_values"], abs=1e-6)


def test_what_cannot_be_chosen_is_refused_in_one_line(model: Classifier) -> None:
    with pytest.raises(InputError, match=r"occlusion offers only one: .* several, such as .*random\(draws=24\)"):
        raison.explain(model, TEXTS[0], "occlusion", select="comprehensiveness")
    with pytest.raises(UnsupportedError, match="gini has no better or worse values"):
        raison.explain(model, TEXTS[0], METHOD, select="gini")
    with pytest.raises(UnsupportedError, match="consistency evaluates many texts"):
        raison.explain(model, TEXTS[0], METHOD, select="consistency")
    with pytest.raises(UnsupportedError, match="max_sensitivity explains the text again"):
        raison.explain(model, TEXTS[0], METHOD, select="max_sensitivity")
    with pytest.raises(UnsupportedError, match=r"auroc needs rationales.*compare"):
        raison.explain(model, TEXTS[0], METHOD, select="auroc")
    with pytest.raises(UnknownNameError, match="Did you mean 'comprehensiveness'"):
        raison.explain(model, TEXTS[0], METHOD, select="comprehensivness")
    with pytest.raises(InputError, match="the metric is .*, of type list"):
        raison.explain(model, TEXTS[0], METHOD, select=["comprehensiveness"])


def test_what_is_written_has_no_choice() -> None:
    generator = Generator(*build_language_model("llama"), "tiny")
    with pytest.raises(InputError, match=r"select= .* load it with a prompt"):
        raison.explain(generator, "the old sailor told", METHOD, select="comprehensiveness")


def test_the_command_line_chooses(
    model: Classifier, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = str(tmp_path / "model")
    model.model.save_pretrained(folder)
    model.tokenizer.save_pretrained(folder)

    def command(*words: str) -> tuple[int, str, str]:
        from raison.cli import main

        monkeypatch.setattr(sys, "argv", ["raison", "explain", TEXTS[7], "--model", folder, *words])
        capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            main()
        shown = capsys.readouterr()
        return int(stop.value.code or 0), shown.out, shown.err

    code, out, _ = command("--method", METHOD, "--select", "comprehensiveness", "--json")
    assert code == 0
    expected = raison.explain(model, TEXTS[7], METHOD, select="comprehensiveness")
    assert json.loads(out)["notes"]["selected_by"] == "comprehensiveness"
    assert raison.Explanation.from_json(out).scores == expected.scores
    code, out, err = command("--method", "occlusion", "--select", "comprehensiveness")
    assert (code, out) == (2, "")
    assert err.startswith("raison: select= chooses")
    assert err.count("\n") == 1
