"""Masked language models: which word at which mask a target names, and what it is compared with."""

import pytest
import torch

import raison
from raison.core.errors import InputError
from raison.core.results.explanation import Explanation
from tests.contracts.test_places import load, texts_of
from tests.tiny import FILLERS

SPACED = "\N{LATIN CAPITAL LETTER G WITH DOT ABOVE}"
"""Before the entry of a word that follows a space."""


def test_targets_of_masks() -> None:
    model = load("masks", "bert")
    text = "I [MASK] this so [MASK] ."
    first, second = raison.explain(model, text, "occlusion", target="each")
    assert (first.place.start, second.place.start) == (2, 17)
    names = [token for token in model.tokenizer.get_vocab() if token.isalpha() and token.islower()]
    this, that = names[:2]
    chosen = raison.explain(model, text, "occlusion", target=(1, this))
    assert (chosen.place.start, chosen.target, chosen.classes[0]) == (17, this, this)
    assert chosen.prediction == second.target
    pair = raison.explain(model, text, "occlusion", target=(1, (this, that)))
    other = raison.explain(model, text, "occlusion", target=(1, that))
    assert pair.scores == pytest.approx([a - b for a, b in zip(chosen.scores, other.scores, strict=True)], abs=1e-6)
    raison.evaluate(model, [chosen, other], "sufficiency(removal='mask')", progress=False)
    odd = (
        (),
        (1,),
        (1, this, that, 0),
        (1, (this,)),
        (1, (this, that, this)),
        (None, None),
        ({}, this),
        ("a", 3),
        True,
    )
    said_of = [((2, this), "is not a mask"), ("unbelievable nonsense", "not one token"), (3.5, "not a word")]
    for wrong, said in [*said_of, *((one, "not a word at a mask|one word for each") for one in odd)]:
        with pytest.raises(InputError, match=said):
            raison.explain(model, text, "occlusion", target=wrong)
    for wrong, said in (("no mask", r"has no \[MASK\]"), ("[MASK]", "nothing but"), (("a", "[MASK]"), "is a pair")):
        with pytest.raises(InputError, match=said):
            raison.explain(model, wrong, "occlusion")


@pytest.mark.parametrize("family", FILLERS)
def test_a_margin_is_taken_against_a_word(family: str) -> None:
    """Not against all other words together, which are nearly always more likely than each of them."""
    model = load("masks", family)
    text = texts_of(model)[0]
    ids = model.encode([text]).input_ids
    with torch.no_grad():
        logits = model.model(input_ids=ids).logits[0, ids[0].tolist().index(model.tokenizer.mask_token_id)]
    first, second = logits.topk(2).indices.tolist()
    e = raison.explain(model, text, "occlusion", of="margin")
    assert e.against == e.classes[1]
    assert e.value_full == pytest.approx(float(logits[first] - logits[second]), abs=1e-4)
    third = int(logits.topk(3).indices[2])
    e = raison.explain(model, text, "occlusion", of="margin", target=(0, third))
    assert e.value_full == pytest.approx(float(logits[third] - logits[first]), abs=1e-4)


def test_a_word_at_the_beginning_has_no_space_before_it() -> None:
    model = load("masks", "roberta")
    words = model.tokenizer.get_vocab()
    word = next(word for word in sorted(words) if word.isalpha() and SPACED + word in words)
    mask = model.tokenizer.mask_token
    for text, token in ((f"{mask} this, did they?", word), (f"I {mask} this", SPACED + word)):
        named = raison.explain(model, text, "occlusion", target=word)
        by_id = raison.explain(model, text, "occlusion", target=(0, words[token]))
        assert named.scores == by_id.scores


def test_a_word_with_and_without_a_space_before_it_are_two() -> None:
    """Each is measured as what it is, although both are written alike."""
    model = load("masks", "roberta")
    text, words = f"I{model.tokenizer.mask_token} this, did they?", model.tokenizer.get_vocab()
    glued = next(word for word in sorted(words) if word.isalpha() and SPACED + word in words)
    ids = words[glued], words[SPACED + glued]
    both = [raison.explain(model, text, "occlusion", target=(0, token)) for token in ids]
    assert [e.target for e in both] == [glued, glued]
    assert [e.place and e.place.tokens for e in both] == [ids[:1], ids[1:]]
    effects = [e.value_full - e.value_empty for e in both]
    assert abs(effects[0] - effects[1]) > 1e-6, "a model that does not tell them apart would pass"
    for e, effect in zip(both, effects, strict=True):
        read = Explanation.from_json(e.to_json())
        assert read == e
        [judged] = raison.evaluate(model, read, "comprehensiveness(share=1.0, removal='mask')", progress=False).metrics
        assert judged.values == pytest.approx([effect], abs=1e-6)
    pair = raison.explain(model, text, "occlusion", target=(0, ids))
    assert pair.place is not None
    assert pair.place.tokens == ids
    assert pair.value_full == pytest.approx(both[0].value_full - both[1].value_full, abs=1e-6)
    with pytest.raises(InputError, match="or its token id"):
        raison.explain(model, text, "occlusion", target=(0, len(words)))
    likeliest = both[0].prediction
    with pytest.raises(InputError, match=r"both targets are the word '.+'; the model predicts it"):
        raison.explain(model, text, "occlusion", target=(0, (None, likeliest)))
    both_ways = [raison.explain(model, text, "occlusion", target=pair) for pair in ((glued, None), (None, glued))]
    assert both_ways[0].value_full == pytest.approx(-both_ways[1].value_full, abs=1e-6)
