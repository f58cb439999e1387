"""The attribution model on its own: what it reads, what it shares with the explained model, and its folder on disk."""

import copy
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

import raison
from raison.core.errors import InputError, LoadError, RaisonError, UnsupportedError
from raison.masking.explainer import find
from raison.methods.aml import Aml
from raison.models.adapters.classifier import Classifier
from raison.models.derived import explainers, trained_masks
from raison.models.derived.attributor import FIXED, Attributor
from raison.models.derived.cards import FILE, SCHEMA
from raison.models.derived.explainers import new_attributor
from raison.models.derived.trained_masks import load_attributor, read_card
from tests.explainers import STATE, edit, saved_encoder, untrained
from tests.tiny import LANGUAGE_MODELS, POSITIONS, build

ENCODERS = ("bert", "roberta", "distilbert", "electra", "modernbert", "t5")
TEXTS = ("a dull plot, but the ending is good", "dull", "It was brilliant, and nobody believed him.")
CLOSE = {"rtol": 1e-4, "atol": 1e-5}


def loaded(name: str = "bert") -> Classifier:
    adapter = raison.load(*build(name))
    assert isinstance(adapter, Classifier)
    return adapter


def written(adapter: Classifier, folder: Path, **settings: object) -> Attributor:
    """An attribution model with drawn weights."""
    untrained(adapter, folder, **settings)
    return find(adapter, str(folder), None).attributor


def wanted(count: int = len(TEXTS)) -> Tensor:
    return torch.tensor([[0.2, 0.5, 0.3], [0.9, 0.1, 0.0], [0.0, 0.0, 1.0]])[:count]


@pytest.mark.parametrize("rank", [2, None])
@pytest.mark.parametrize("name", ENCODERS)
def test_padding_and_neighbours_change_nothing(name, rank, tmp_path):
    attributor = written(loaded(name), tmp_path, rank=rank)
    encoding = attributor.encode(TEXTS)
    with torch.no_grad():
        together = attributor(encoding, wanted())
        for row, length in enumerate(encoding.lengths):
            alone = attributor(encoding.select([row]), wanted()[row : row + 1])[0]
            assert len(alone) == length
            torch.testing.assert_close(together[row, :length], alone, **CLOSE)
    own = together[encoding.scored]
    assert ((own > 0) & (own < 1)).all()
    assert own.std() > 5e-3


@pytest.mark.parametrize("name", ENCODERS)
def test_scores_depend_on_the_prediction_and_on_what_follows(name, tmp_path):
    attributor = written(loaded(name), tmp_path)
    encoding = attributor.encode(["a dull plot", "a dull film"])
    with torch.no_grad():
        first, second = attributor(encoding, wanted(2))
        other, _ = attributor(encoding, wanted(2).flip(0))
    # The second token is the same in both texts, the prediction is not; then the prediction alone differs.
    assert (first[1] - second[1]).abs() > 1e-6
    assert (first - other).abs().max() > 1e-4


@pytest.mark.parametrize("name", ["bert", "roberta", "distilbert", "electra"])
def test_a_text_that_is_too_long_leaves_room_for_the_prediction(name, tmp_path):
    attributor = written(loaded(name), tmp_path)
    long = "dull " * 300
    encoding = attributor.encode([long])
    assert encoding.lengths == (POSITIONS - 1,)
    assert encoding.truncated[0] > 0
    with torch.no_grad():
        assert torch.isfinite(attributor(encoding, wanted(1))).all()


def test_units_beyond_what_the_attribution_model_reads_have_zero(tmp_path):
    adapter = loaded("t5")
    assert adapter.max_tokens > 3 * POSITIONS
    untrained(adapter, tmp_path, backbone=saved_encoder(tmp_path / "bert"))
    text = ("dull " * 95).strip()
    for steps in (0, 1):
        found = raison.explain(adapter, text, Aml(str(tmp_path), steps=steps))
        read = find(adapter, str(tmp_path), None).attributor.encode([text]).offsets.max()
        units = np.array([unit.start < read for unit in found.units])
        scores = np.array(found.scores)
        assert (scores[units] > 0).all()
        assert not scores[~units].any()
        assert 0 < units.sum() < len(units)


@pytest.mark.parametrize("name", LANGUAGE_MODELS)
def test_a_model_that_reads_from_left_to_right_is_refused(name, tmp_path):
    adapter = loaded(name)
    with pytest.raises(UnsupportedError, match="cannot be an attribution model: it reads from left to right") as own:
        new_attributor(adapter, "own", 2, learned=False)
    with pytest.raises(UnsupportedError, match="cannot be an attribution model") as folder:
        new_attributor(loaded(), saved_encoder(tmp_path, name), 2, learned=False)
    for caught in (own, folder):
        assert "Give an encoder as the backbone (--backbone minilm)" in str(caught.value)
        assert "\n" not in str(caught.value)


def test_a_backbone_that_is_none_is_refused(tmp_path):
    with pytest.raises(LoadError, match="cannot load the backbone") as caught:
        new_attributor(loaded(), str(tmp_path), 2, learned=False)
    assert "\n" not in str(caught.value)


def storages(module: torch.nn.Module) -> set[int]:
    return {parameter.data_ptr() for parameter in module.parameters()}


@pytest.mark.parametrize("name", ENCODERS)
def test_low_rank_reads_with_the_explained_model_s_own_memory(name):
    adapter = loaded(name)
    adapter.model.train()
    before = copy.deepcopy(adapter.model.state_dict())
    flags = [(parameter.requires_grad, parameter.grad) for parameter in adapter.model.parameters()]
    modules = [(type(module), module.training, len(module._forward_hooks)) for module in adapter.model.modules()]
    random_state = torch.get_rng_state()
    attributor = new_attributor(adapter, "own", 2, learned=True)
    frozen = [parameter for parameter in attributor.backbone.parameters() if not parameter.requires_grad]
    assert {parameter.data_ptr() for parameter in frozen} <= storages(adapter.model)
    assert not storages(new_attributor(adapter, "own", None, learned=False)) & storages(adapter.model)
    attributor(attributor.encode(TEXTS), wanted()).sum().backward()
    assert all(torch.equal(value, before[key]) for key, value in adapter.model.state_dict().items())
    assert [(p.requires_grad, p.grad) for p in adapter.model.parameters()] == flags
    assert [(type(m), m.training, len(m._forward_hooks)) for m in adapter.model.modules()] == modules
    assert torch.equal(torch.get_rng_state(), random_state)


def test_hooks_of_the_caller_do_not_fire_in_the_attribution_model():
    adapter = loaded()
    calls: list[int] = []
    for module in adapter.model.modules():
        module.register_forward_hook(lambda *_: calls.append(1))
    attributor = new_attributor(adapter, "own", 2, learned=False)
    calls.clear()
    attributor(attributor.encode(TEXTS), wanted())
    assert not calls


def test_a_whole_backbone_can_be_trained_without_the_explained_model_noticing():
    adapter = loaded()
    attributor = new_attributor(adapter, "own", None, learned=False)
    before = copy.deepcopy(adapter.model.state_dict())
    with torch.no_grad():
        for parameter in attributor.parameters():
            parameter.add_(1.0)
    assert all(torch.equal(value, before[key]) for key, value in adapter.model.state_dict().items())


def test_the_seed_decides_what_is_new():
    adapter = loaded()
    first, again, other = (new_attributor(adapter, "own", 2, learned=False, seed=seed) for seed in (1, 1, 2))
    for (name, one), two in zip(first.named_parameters(), again.parameters(), strict=True):
        assert torch.equal(one, two), name
    assert not torch.equal(first.labels, other.labels)


def test_what_is_tuned_on_a_text_is_all_that_is_trained_but_what_stands_for_labels():
    attributor = new_attributor(loaded(), "own", 2, learned=True)
    trained = {name for name, parameter in attributor.named_parameters() if parameter.requires_grad}
    assert trained - set(attributor.tuned()) == set(FIXED)
    assert all(name.endswith((".up", ".down")) or name.startswith(("hidden", "output")) for name in attributor.tuned())


def test_the_learned_embedding_starts_where_the_mask_token_is():
    adapter = loaded()
    table = adapter.model.get_input_embeddings().weight
    attributor = new_attributor(adapter, "own", 2, learned=True)
    assert torch.equal(attributor.substitute, table[adapter.tokenizer.mask_token_id])
    assert attributor.substitute.requires_grad


@pytest.mark.parametrize("rank", [2, None])
@pytest.mark.parametrize("name", ["bert", "roberta", "t5"])
def test_saved_and_loaded_again_it_gives_the_same_scores(name, rank, tmp_path):
    """Up to half precision."""
    adapter = loaded(name)
    card = untrained(adapter, tmp_path, rank=rank)
    assert read_card(tmp_path, adapter.name) == card
    attributor = load_attributor(tmp_path, card, "comprehensiveness", adapter)
    assert {tensor.dtype for tensor in load_file(tmp_path / STATE).values()} == {torch.float16}
    assert (tmp_path / STATE).stat().st_mode & 0o044 == 0o044
    with torch.no_grad():
        for parameter in attributor.parameters():
            if parameter.requires_grad:
                # In the last place of a half.
                parameter.mul_(1 + 2.0**-12)
        before = attributor(attributor.encode(TEXTS), wanted())
        state = {key: value for key, value in attributor.named_parameters() if value.requires_grad}
        trained_masks.write(tmp_path, card, {STATE: state})
        after = load_attributor(tmp_path, card, "comprehensiveness", adapter)
        torch.testing.assert_close(after(after.encode(TEXTS), wanted()), before, rtol=0, atol=1e-2)


# An explainer's folder that cannot be used: one clear line each.


def refusal(adapter: Classifier, folder: Path, metric: str | None = None) -> str:
    with pytest.raises(RaisonError) as caught:
        raison.explain(adapter, TEXTS[0], Aml(str(folder), metric))
    said = str(caught.value)
    assert "\n" not in said
    return said


def test_a_folder_without_an_explainer(tmp_path):
    adapter = loaded()
    said = refusal(adapter, tmp_path / "nowhere")
    assert f"there is no trained explainer in {tmp_path / 'nowhere'}: train one (raison train aml --model" in said
    assert "or name its folder (aml(checkpoint='FOLDER'))" in said


def test_no_folder_named_and_none_where_it_is_looked_for(tmp_path, monkeypatch):
    monkeypatch.setenv("RAISON_CACHE", str(tmp_path))
    adapter = loaded()
    with pytest.raises(LoadError, match="there is no trained explainer in .*BertForSequenceClassification"):
        raison.explain(adapter, TEXTS[0], "aml")
    untrained(adapter, explainers.usual_folder(adapter.name, "aml"))
    assert raison.explain(adapter, TEXTS[0], "aml").notes["trained_for"] == "comprehensiveness"


def test_the_usual_folder_is_beside_the_model_s_files(tmp_path):
    assert explainers.usual_folder(str(tmp_path), "aml") == tmp_path / "aml"
    assert explainers.usual_folder("demo/sst2", "aml").parts[-3:] == ("demo", "sst2", "aml")
    assert "owner--name" in str(explainers.usual_folder("owner/name", "aml"))


def test_other_labels(tmp_path):
    adapter = loaded()
    untrained(adapter, tmp_path, classes=("bad", "so-so", "good"))
    said = refusal(adapter, tmp_path)
    assert "its labels are bad, so-so, good, the model's are negative, neutral, positive" in said
    assert f"Train one: raison train aml --model {adapter.name} --data" in said


def test_another_tokenizer_and_other_labels_are_both_named(tmp_path):
    untrained(loaded("distilbert"), tmp_path, classes=("bad", "so-so", "good"))
    said = refusal(loaded("bert"), tmp_path)
    assert "was trained for DistilBertForSequenceClassification and does not explain Bert" in said
    assert "its labels are" in said
    assert "it was trained with another tokenizer" in said


def test_another_model_with_the_same_labels_and_tokenizer(tmp_path):
    adapter, other = loaded(), loaded()
    other.model.classifier.bias.data[0] += 3
    untrained(adapter, tmp_path)
    said = refusal(other, tmp_path)
    assert (
        "on 'The plot is thin, but the acting is a quiet pleasure.' the two models' probabilities differ by 0." in said
    )


def test_a_model_that_was_trained_further_is_checked_again(tmp_path):
    adapter = loaded()
    untrained(adapter, tmp_path)
    assert raison.explain(adapter, TEXTS[0], Aml(str(tmp_path))).scores
    optimizer = torch.optim.SGD(adapter.model.parameters(), lr=1.0)
    for _ in range(20):
        optimizer.zero_grad()
        adapter.model(**adapter.tokenizer(TEXTS[0], return_tensors="pt")).logits[0, 2].neg().backward()
        optimizer.step()
    adapter.model.zero_grad()
    assert "the two models' probabilities differ" in refusal(adapter, tmp_path)


def test_an_explainer_that_was_trained_again_is_read_again(tmp_path):
    adapter = loaded()
    card = untrained(adapter, tmp_path)
    before = raison.explain(adapter, TEXTS[0], Aml(str(tmp_path))).scores
    state = {key: value.float() for key, value in load_file(tmp_path / STATE).items()}
    trained_masks.write(tmp_path, card, {STATE: state | {"output.bias": state["output.bias"] + 1}})
    after = raison.explain(adapter, TEXTS[0], Aml(str(tmp_path))).scores
    assert all(a > b for a, b in zip(after, before, strict=True))


def test_a_metric_that_it_was_not_trained_for(tmp_path):
    adapter = loaded()
    untrained(adapter, tmp_path, metrics=("comprehensiveness", "log_odds"))
    said = refusal(adapter, tmp_path, "sufficiency")
    assert "was not trained for the metric 'sufficiency' but for comprehensiveness, log_odds" in said
    assert "name one of these, or train for it (raison train aml --metrics sufficiency)" in said
    assert raison.explain(adapter, TEXTS[0], Aml(str(tmp_path), "log_odds")).notes["trained_for"] == "log_odds"


def test_a_card_of_a_newer_version(tmp_path):
    adapter = loaded()
    untrained(adapter, tmp_path)
    edit(tmp_path, lambda card: card.update(schema=99, new_field=1))
    assert "was written by a newer version of raison: upgrade raison" in refusal(adapter, tmp_path)


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[]",
        "null",
        "{}",
        '{"schema": 1}',
        '{"schema": "one"}',
        '{"schema": 1, "goals": 3}',
        '{"schema": 1, "goals": {"comprehensiveness": 5}}',
    ],
)
def test_a_card_that_cannot_be_read(content, tmp_path):
    adapter = loaded()
    untrained(adapter, tmp_path)
    (tmp_path / FILE).write_text(content, encoding="utf-8")
    said = refusal(adapter, tmp_path)
    assert f"cannot read {tmp_path / FILE}" in said
    assert "Train the explainer again." in said


def test_a_card_without_goals(tmp_path):
    adapter = loaded()
    untrained(adapter, tmp_path)
    edit(tmp_path, lambda card: card.update(goals={}))
    said = refusal(adapter, tmp_path)
    assert f"cannot read {tmp_path / FILE}" in said
    assert "Train the explainer again." in said


@pytest.mark.parametrize("content", [b"", b"no weights", b"\xff" * 64])
def test_weights_that_cannot_be_read(content, tmp_path):
    adapter = loaded()
    untrained(adapter, tmp_path)
    (tmp_path / STATE).write_bytes(content)
    said = refusal(adapter, tmp_path)
    assert f"cannot read the explainer's weights {tmp_path / STATE}" in said
    assert "Train the explainer again." in said


def test_weights_that_are_missing(tmp_path):
    adapter = loaded()
    untrained(adapter, tmp_path)
    (tmp_path / STATE).unlink()
    said = refusal(adapter, tmp_path)
    assert f"cannot read the explainer's weights {tmp_path / STATE}" in said
    assert "Train the explainer again." in said


@pytest.mark.parametrize("change", ["one is missing", "one too many", "another size", "another backbone"])
def test_weights_that_do_not_fit(change, tmp_path):
    adapter = loaded()
    card = untrained(adapter, tmp_path)
    state = {key: value.float() for key, value in load_file(tmp_path / STATE).items()}
    if change == "one is missing":
        state.pop("labels")
    elif change == "one too many":
        state["more"] = torch.zeros(2)
    elif change == "another size":
        state["labels"] = torch.zeros(7, 32)
    else:
        other = saved_encoder(tmp_path / "other", "electra")
        edit(tmp_path, lambda content: content.update(backbone=other))
    if change != "another backbone":
        trained_masks.write(tmp_path, card, {STATE: state})
    said = refusal(adapter, tmp_path)
    assert f"{tmp_path / STATE} does not fit the backbone" in said
    assert "train the explainer again" in said


def test_a_backbone_that_is_gone(tmp_path):
    adapter = loaded()
    untrained(adapter, tmp_path / "explainer", backbone=saved_encoder(tmp_path / "bert"))
    shutil.rmtree(tmp_path / "bert")
    assert f"cannot load the backbone '{tmp_path / 'bert'}'" in refusal(adapter, tmp_path / "explainer")


def test_a_weight_of_the_losses_that_cannot_be(tmp_path):
    adapter = loaded()
    untrained(adapter, tmp_path)
    edit(tmp_path, lambda card: card["goals"]["comprehensiveness"].update(weights={"prediction": -1.0}))
    with pytest.raises(InputError, match="the weight of the loss 'prediction' cannot be -1.0"):
        raison.explain(adapter, TEXTS[0], Aml(str(tmp_path), steps=1))


def test_a_card_is_plain_json_that_says_where_it_is_from(tmp_path):
    adapter = loaded()
    untrained(adapter, tmp_path, provenance={"command": "raison train aml", "seconds": 3.5})
    content = json.loads((tmp_path / FILE).read_text(encoding="utf-8"))
    assert content["schema"] == SCHEMA
    assert content["provenance"]["seconds"] == 3.5
    assert content["goals"]["comprehensiveness"]["file"] == STATE
    assert read_card(tmp_path, "any").provenance == content["provenance"]
