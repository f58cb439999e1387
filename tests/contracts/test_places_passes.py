"""How many passes models that predict at places of a text take."""

from pathlib import Path

import pytest
import torch

import raison
from raison.models.adapters.classifier import Classifier
from tests.contracts.test_places import CASES, load, texts_of


@pytest.fixture(params=CASES, ids="-".join)
def model(request: pytest.FixtureRequest) -> Classifier:
    return load(*request.param)


def test_texts_are_read_once_to_find_what_is_explained(model: Classifier, tmp_path: Path) -> None:
    """A method without passes takes that one, or one per mask, and the values of the whole and the empty text; checking
    takes none."""
    texts, rows = texts_of(model), []
    target = None if model.tokenizer.mask_token in texts[0] else (0, 3)
    found = sum(text.count(model.tokenizer.mask_token) for text in texts) if target is None else len(texts)
    raison.explain(model, texts, "random", target=target, progress=False)

    def noted(_module: object, _args: object, given: dict[str, torch.Tensor]) -> None:
        rows.append(len(given["input_ids"]))

    model.core.register_forward_pre_hook(noted, with_kwargs=True)
    model.tokenized(texts, "word")
    assert not rows
    raison.explain(model, texts, "random", target=target, progress=False)
    assert sum(rows) == found + 2 * len(texts)
    rows.clear()
    (tmp_path / "texts.txt").write_text("\n".join(f"{text} {word}" for word in ("sea", "film") for text in texts))
    raison.explain_file(model, tmp_path / "texts.txt", tmp_path / "out", "random", target=target, progress=False)
    # The first row is tried before anything is written.
    assert rows.count(1) == 3
