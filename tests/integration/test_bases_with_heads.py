"""Bases that were classifiers before: their heads are left out, and a new training begins with a new one."""

from pathlib import Path

import pytest
import torch
from torch import Tensor
from transformers import AutoModel, PreTrainedModel

from raison.core.errors import LoadError
from raison.models.loading.ready_made.zoo import fresh_classifier, fresh_span_model
from tests.tiny import ANSWERING, LABELS, build, build_answering

FAMILIES = ("bert", "roberta", "deberta_v2", "distilbert", "electra", "gpt2", "llama", "bart")


def saved(name: str, folder: Path, problem: str | None = None) -> tuple[Path, Path]:
    """A trained classifier, and its body alone."""
    model, tokenizer = build(name, problem=problem)
    model.save_pretrained(folder / "trained")
    AutoModel.from_pretrained(folder / "trained").save_pretrained(folder / "body")
    for one in ("trained", "body"):
        tokenizer.save_pretrained(folder / one)
    return folder / "trained", folder / "body"


def same(one: PreTrainedModel, other: PreTrainedModel) -> bool:
    first, second = one.state_dict(), other.state_dict()
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


def head_of(model: PreTrainedModel) -> dict[str, Tensor]:
    prefix = f"{model.base_model_prefix}."
    return {name: weight for name, weight in model.named_parameters() if not name.startswith(prefix)}


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("classes", [LABELS, ("a", "b", "c", "d", "e")], ids=["same_number", "another_number"])
def test_the_old_head_of_a_base_is_left_out(name: str, classes: tuple[str, ...], tmp_path: Path) -> None:
    trained, body = saved(name, tmp_path)
    before = torch.get_rng_state()
    first, other = (fresh_classifier(trained, classes, seed)[0] for seed in (3, 4))
    assert torch.equal(torch.get_rng_state(), before)
    assert not first.training
    assert same(first, fresh_classifier(body, classes, 3)[0]), "as for a base that never had a head"
    assert first.config.id2label == dict(enumerate(classes))
    old = head_of(build(name)[0])
    for part, weight in head_of(first).items():
        # Biases start at the same values for every seed.
        if weight.dim() > 1:
            assert not torch.equal(weight, head_of(other)[part]), part
        assert weight.shape != old[part].shape or not torch.equal(weight, old[part]), part


def test_how_the_old_head_was_read_does_not_matter(tmp_path: Path) -> None:
    trained, _ = saved("bert", tmp_path, "multi_label_classification")
    assert fresh_classifier(trained, LABELS)[0].config.problem_type is None


@pytest.mark.parametrize("name", ANSWERING)
def test_the_old_head_for_answers_is_left_out(name: str, tmp_path: Path) -> None:
    model, tokenizer = build_answering(name)
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    heads = [head_of(model), *(head_of(fresh_span_model(tmp_path, seed)[0]) for seed in (0, 0, 1))]
    weights = [head["qa_outputs.weight"] for head in heads]
    assert torch.equal(weights[1], weights[2])
    assert not torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[1], weights[3])


def test_a_body_of_another_size_is_still_refused(tmp_path: Path) -> None:
    trained, _ = saved("bert", tmp_path)
    config = trained / "config.json"
    config.write_text(config.read_text().replace('"hidden_size": 32', '"hidden_size": 64'))
    with pytest.raises(LoadError, match="cannot load"):
        fresh_classifier(trained, LABELS)
