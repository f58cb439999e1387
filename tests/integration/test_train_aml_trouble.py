"""Training an explainer when it is killed, when it diverges, and on input that cannot be used."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForTokenClassification

import raison
from raison.core.errors import DataError, InputError, NonFiniteError, RaisonError, UnknownNameError, UnsupportedError
from raison.models.derived import cards
from raison.numerics.losses.attributive_masking import LossWeights
from raison.training.objectives.attributive_masking import AttributiveMasking
from raison.training.recipes.aml import train_aml
from raison.training.recipes.ivra import train_ivra
from raison.training.settings.aml import AmlSettings
from raison.training.settings.ivra import IvraSettings
from tests.conftest import ALL
from tests.planted import DATA, GIVEN, Killed, Planted, dies_at, killed_at, names_in, no_search, quick_settings, texts
from tests.tiny import TAGS, TINY, build_at_places


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> AmlSettings:
    return quick_settings(tmp_path_factory.mktemp("backbone"))


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> list[Sequence[str]]:
    return no_search(monkeypatch)


def dies(*_: object, metadata: object = None) -> None:
    raise Killed


def content(folder: Path) -> dict[str, object]:
    """All that an explainer is, without what every run notes of itself."""
    card = json.loads((folder / "explainer.json").read_text())
    for noted in ("seconds", "peak_bytes"):
        del card["provenance"][noted]
    return {"card": card} | {path.name: path.read_bytes() for path in folder.glob("*.safetensors")}


@pytest.fixture(scope="module")
def whole(quick: AmlSettings, tmp_path_factory: pytest.TempPathFactory) -> tuple[Planted, Path]:
    """A training that nothing stops: what its model was asked, and its folder."""
    model, out = Planted(), tmp_path_factory.mktemp("whole")
    train_aml(model, DATA, out, quick)
    return model, out


# Steps 1 to 6 are the search's, two in each trial; 7 to 12 the training's. What is left to do after the last kill.
KILLS = [((1,), 12), ((7,), 6), ((12,), 1), ((4, 6, 3), 3)]
MORE = [((4,), 10), ((6,), 8), ((9,), 4)] if ALL else []


@pytest.mark.in_turn(2)
@pytest.mark.parametrize(("kills", "steps"), [*KILLS, *MORE])
def test_a_killed_run_gives_the_same_explainer(
    quick: AmlSettings, whole: tuple[Planted, Path], tmp_path: Path, kills: tuple[int, ...], steps: int
) -> None:
    for call in kills:
        killed_at(call, tmp_path / "cut", quick)
        assert "search.jsonl" in names_in(tmp_path / "cut")
        assert "explainer.json" not in names_in(tmp_path / "cut")
    resumed, (unbroken, out) = Planted(), whole
    train_aml(resumed, DATA, tmp_path / "cut", quick)
    assert content(tmp_path / "cut") == content(out)
    assert names_in(tmp_path / "cut") == ["comprehensiveness.safetensors", "explainer.json"]
    # No step of the training is made again, and at most one trial.
    assert len(resumed.rows) == steps
    # The batches are those of the whole run: a text in another batch has other last digits, which decide which moment
    # is best.
    assert 0 < len(resumed.perturbed) <= len(unbroken.perturbed)
    assert resumed.perturbed == unbroken.perturbed[-len(resumed.perturbed) :]


def test_a_kill_in_a_second_training_or_while_saving(
    quick: AmlSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, searches: list[Sequence[str]]
) -> None:
    both = replace(quick, metrics=("comprehensiveness", "sufficiency"))
    train_aml(Planted(), DATA, tmp_path / "whole", both)
    killed_at(10, tmp_path / "cut", both)
    assert len(list((tmp_path / "cut").glob("training-*.checkpoint"))) == 2
    with monkeypatch.context() as patched:
        patched.setattr(cards, "save_file", dies)
        with pytest.raises(Killed):
            train_aml(Planted(), DATA, tmp_path / "cut", both)
    # All steps were made by now.
    dies_at(monkeypatch, 1)
    train_aml(Planted(), DATA, tmp_path / "cut", both)
    assert content(tmp_path / "cut") == content(tmp_path / "whole")
    expected = ["comprehensiveness.safetensors", "explainer.json", "sufficiency.safetensors"]
    assert names_in(tmp_path / "cut") == expected


def test_a_search_can_be_made_longer_after_the_final_training_began(quick: AmlSettings, tmp_path: Path) -> None:
    """The longer search may choose other weights, whose training begins anew."""
    # A trial of two steps comes before the final training.
    killed_at(4, tmp_path / "cut", replace(quick, trials=1))
    assert list((tmp_path / "cut").glob("training-*.checkpoint"))
    longer = replace(quick, trials=6)
    train_aml(Planted(), DATA, tmp_path / "cut", longer)
    train_aml(Planted(), DATA, tmp_path / "whole", longer)
    assert content(tmp_path / "cut") == content(tmp_path / "whole")
    assert not list((tmp_path / "cut").glob("*.checkpoint"))


# Bad input


@pytest.mark.parametrize(
    ("changed", "error", "said"),
    [
        ({"texts": 33}, InputError, "planted has 40 texts, but 41 are needed.*--texts, --validation"),
        ({"metrics": ("comprehensivness",)}, UnknownNameError, "Did you mean 'comprehensiveness'"),
        ({"metrics": ("consistency",)}, UnsupportedError, "evaluates many texts together"),
        ({"metrics": ("gini",)}, UnsupportedError, "no better or worse values"),
        ({"metrics": ("max_sensitivity",)}, UnsupportedError, "explains the text again"),
        ({"metrics": ("comprehensiveness", "auroc")}, UnsupportedError, "auroc needs rationales"),
        ({"metrics": ()}, InputError, "at least one metric"),
        ({"metrics": ("sufficiency", "sufficiency()")}, InputError, "each only once"),
        ({"masking": "msk"}, UnknownNameError, "unknown masking 'msk'. Did you mean 'mask'"),
        ({"masking": "ellipsis"}, UnsupportedError, "no ellipsis token. Use 'mask', 'random', 'learned', 'pad'"),
        ({"masking": "predicted"}, InputError, "--filler NAME"),
        ({"merge": "men"}, UnknownNameError, "Did you mean 'mean'"),
        ({"size": "l2"}, UnknownNameError, "Did you mean 'l1'"),
        ({"unit": "words"}, UnknownNameError, "Did you mean 'word'"),
        ({"without": "size"}, UnknownNameError, "inverse, prediction"),
        ({"without": "prediction", "weights": LossWeights(1.0, 0.0, 1.0)}, InputError, "nothing would be explained"),
        ({"learning_rate": 0.0}, InputError, "learning_rate cannot be 0.0"),
        ({"learning_rate": math.nan}, InputError, "learning_rate cannot be nan"),
        ({"rank": 0}, InputError, "rank cannot be 0"),
        ({"epochs": 0}, InputError, "epochs cannot be 0"),
        ({"backbone": "own"}, InputError, "has no encoder"),
        ({"backbone": str(Path(__file__).parent)}, RaisonError, "cannot load the backbone"),
    ],
)
def test_settings_that_cannot_be(
    quick: AmlSettings, tmp_path: Path, changed: Mapping[str, object], error: type[RaisonError], said: str
) -> None:
    out = tmp_path / "out"
    with pytest.raises(error, match=said) as found:
        train_aml(Planted(), DATA, out, replace(quick, **changed))
    assert "\n" not in str(found.value)
    assert not out.exists()


def test_texts_of_one_predicted_class_cannot_judge(quick: AmlSettings, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="predicts 'positive' on all 8 validation texts.*--dev.*--validation"):
        train_aml(Planted(), DATA, tmp_path / "out", quick, texts(20, 0, ("good", "fine")))
    assert not (tmp_path / "out").exists()


def test_models_that_read_from_left_to_right_are_no_backbone(quick: AmlSettings, tmp_path: Path) -> None:
    model, tokenizer = TINY["gpt2"]()
    model.base_model.save_pretrained(tmp_path / "gpt2")
    tokenizer.save_pretrained(tmp_path / "gpt2")
    for backbone in (str(tmp_path / "gpt2"), "own"):
        with pytest.raises(UnsupportedError, match="reads from left to right.*--backbone minilm"):
            train_aml(raison.load(model, tokenizer), DATA, tmp_path / "out", replace(quick, backbone=backbone))
    assert not (tmp_path / "out").exists()
    # It can be explained by an encoder.
    card = train_aml(raison.load(model, tokenizer), DATA, tmp_path / "out", replace(quick, weights=GIVEN))
    assert card.masking == "unk"


class Bare(Planted):
    """No mask token and no other that could stand for one."""

    removals = ("delete",)


def test_nothing_to_mask_with(quick: AmlSettings, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="no mask token.*no unknown token. .*--masking random or learned"):
        train_aml(Bare(), DATA, tmp_path / "out", quick)
    assert not (tmp_path / "out").exists()
    for masking in ("random", "learned"):
        card = train_aml(Bare(), DATA, tmp_path / masking, replace(quick, masking=masking, weights=GIVEN))
        assert card.masking == masking
        assert ("substitute" in load_file(tmp_path / masking / "comprehensiveness.safetensors")) == (
            masking == "learned"
        )


def test_every_trial_diverges(quick: AmlSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out"
    for way, rate in (("rate", 1e30), ("objective", 0.01)):
        with monkeypatch.context() as patched:
            if way == "objective":
                patched.setattr(AttributiveMasking, "loss", lambda *given: torch.tensor(math.nan))
            with pytest.raises(
                InputError, match="every one of the 3 trials diverged.*lower the learning rate"
            ) as found:
                train_aml(Planted(), DATA, out, replace(quick, learning_rate=rate))
            assert "\n" not in str(found.value)
            assert not out.exists()
    # The advice can be followed at once.
    train_aml(Planted(), DATA, out, quick)
    with pytest.raises(NonFiniteError, match="lower the learning rate|NaN"):
        train_aml(Planted(), DATA, tmp_path / "given", replace(quick, weights=GIVEN, learning_rate=1e30))
    assert not (tmp_path / "given" / "explainer.json").exists()


def test_what_another_run_left(quick: AmlSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out"
    killed_at(4, out, quick)
    journal = (out / "search.jsonl").read_bytes()
    for data, settings in (
        (DATA, replace(quick, seed=1)),
        (DATA, replace(quick, without="inverse")),
        # Other texts of the same file.
        (texts(40, 1), quick),
    ):
        with pytest.raises(DataError, match=r"another training \(it differs in (settings|data)\)"):
            train_aml(Planted(), data, out, settings)
        assert (out / "search.jsonl").read_bytes() == journal
    # But a search may be made longer.
    assert len(train_aml(Planted(), DATA, out, replace(quick, trials=4)).provenance["trials"]) == 4
    given = replace(quick, weights=GIVEN)
    second = tmp_path / "second"
    killed_at(4, second, given)
    with pytest.raises(DataError, match=r"another training \(it differs in settings\)"):
        train_aml(Planted(), DATA, second, replace(given, weights=LossWeights()))
    [checkpoint] = second.glob("training-*.checkpoint")
    checkpoint.write_bytes(b"nonsense")
    with pytest.raises(InputError, match="is not a checkpoint of this trainer"):
        train_aml(Planted(), DATA, second, given)
    (out / "search.jsonl").write_text("nonsense\n")
    with pytest.raises(InputError, match="not the journal of a search"):
        train_aml(Planted(), DATA, out, quick)


def test_predictions_at_places_of_a_text_have_no_trained_explainer(tmp_path: Path) -> None:
    tagger = raison.load(*build_at_places("bert", AutoModelForTokenClassification, TAGS))
    calls: list[Callable[[], object]] = [
        lambda: train_aml(tagger, DATA, tmp_path / "aml", AmlSettings()),
        lambda: train_ivra(tagger, DATA, tmp_path / "ivra", IvraSettings(criteria=("comp",))),
        *(partial(raison.explain, tagger, "A dull plot", method, progress=False) for method in ("aml", "ivra", "smat")),
    ]
    for call in calls:
        with pytest.raises(UnsupportedError, match="it predicts at positions of the text") as caught:
            call()
        assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())
