"""Nasty texts: every method on every family explains each of them, or says in one line why not, and alone as together.

A text that a model cannot take takes none of the others with it, and no text takes more than a moment.
"""

import json
import math
import time
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import raison
from raison.core.errors import RaisonError
from raison.core.inputs.unit import Text, segments
from raison.core.method import Property
from raison.core.registry import name_of
from raison.core.results.explanation import Explanation
from raison.methods import CATALOGUE
from raison.models.adapters.classifier import Classifier
from raison.models.derived.explainers import usual_folder
from raison.report.explanations.html import page
from raison.report.explanations.terminal import explanation_text
from raison.report.style.terminal_text import plain
from tests.conftest import ALL
from tests.contracts.test_methods import CLOSE
from tests.contracts.test_threads import CALLS, FAMILIES, built
from tests.patience import slowness
from tests.untrained import untrained_for

CALLS = CALLS | {
    "integrated_gradients": "integrated_gradients(steps=4)",
    "lime": "lime(samples=8)",
    "kernel_shap": "kernel_shap(samples=8)",
    "partition_shap": "partition_shap(samples=8)",
    "shapley_sampling": "shapley_sampling(samples=8)",
}
NASTY = {
    "plain": "a dull plot",
    "high surrogate": "a dull \ud83d plot",
    "low surrogate": "\udc00",
    "swapped surrogates": "dull \ude00\ud83d end",
    "control": "a\x01dull\x02\x1b[31mplot\x7f\x9b2J end",
    "NUL": "\x00",
    "NULs inside": "dull\x00plot\x00",
    "end of text": "</s>",
    "special": "a dull </s> plot <s> <pad> <unk> <mask> [CLS] [SEP] [MASK] [PAD] [UNK] <|endoftext|> <|im_start|> end",
    "special glued": "dull</s>plot[SEP]</s></s>",
    "special in part": "dull </s plot > [SEP <|endoftext",
    "zero width": "\u200b",
    "zero width inside": "du\u200bll\u200dplot\u2060\ufeff end",
    "empty once cleaned": "\u200b\u200c\u200d\ufeff\xad",
    "only spaces": "   ",
    "only white space": "\t\n\r\u2003\u2028\xa0",
    "nothing": "",
    "space around": "  \n dull \t ",
    "family": "dull 👩‍👩‍👧‍👦 👍🏽 🇩🇪🇫🇷 plot 🏴󠁧󠁢󠁥󠁮󠁧󠁿",
    "half a flag": "🇩 dull 🇪",
    "right to left": "\u202edull\u202c هادئا والسماء \u200fplot הים",
    "combining": "e" + "\u0301" * 60 + " dull",
    "combining alone": "\u0301\u0301\u0301",
    "long word": "pneumono" * 40,
    "5,000 characters": "x" * 5000,
    "5,000 words": "dull plot " * 2500,
    "one long ideograph run": "海" * 400,
    "private": "dull \U00100001 \ue000 \ufdd0 \uffff end",
    "tags": "<script>alert(1)</script> & \"dull\" 'plot' <!-- {{ }} {text} %s",
    "markdown": "**dull** | `plot` | [end](x) \\ $ _ #",
    "unknown": "ⰴⰵⱀ ⷈⷅ ꙮ",
    "replacement": "\ufffd dull \ufffd",
    "line breaks": "dull\r\n\n\u2029plot\x0b\x0cend",
    "punctuation": "?!?!... --- ''' \"\"\"",
    "numbers": "-0.0 1e999 NaN inf ٣٤ Ⅷ ½",
    "turned": "ﬁne ﷺ ǅ İ ß Å",
}
MOMENT = 20.0
"""Seconds of a usual machine for one call on a tiny model: texts of 5,000 characters take part of one."""


@cache
def fuzzed(family: str) -> Classifier:
    return built(family)


def wrapped(model: Classifier, text: str) -> Text:
    return ("who ?", text) if model.head.in_place else text


def told(error: RaisonError) -> str:
    line = str(error)
    assert line
    assert "\n" not in line
    assert len(line) < 2000
    line.encode()
    return line


@cache
def takes(family: str, name: str) -> bool:
    """Whether the model can be asked about the text at all: else every method says so, before anything runs."""
    model = fuzzed(family)
    try:
        model.encode([wrapped(model, NASTY[name])], "word", truncate=True)
    except RaisonError as error:
        told(error)
        return False
    return True


def right(explanation: Explanation, text: Text) -> None:
    """Finite scores of spans that lie in the text in order, and JSON that comes back."""
    assert explanation.text == text
    assert explanation.units
    assert len(explanation.scores) == len(explanation.units)
    assert all(map(math.isfinite, (*explanation.scores, explanation.value_full, explanation.value_empty)))
    parts, after = segments(text), (0, 0)
    for unit in explanation.units:
        part = parts[unit.segment]
        assert 0 <= unit.start <= unit.end <= len(part)
        assert unit.text == part[unit.start : unit.end]
        assert after <= (unit.segment, unit.start)
        after = (unit.segment, unit.end)
    written = explanation.to_json()
    written.encode()
    assert Explanation.from_json(written) == explanation


def explained(model: Classifier, texts: list[Text], call: str) -> list[Explanation] | str:
    start = time.process_time()
    try:
        return raison.explain(model, texts, call, of="logit", truncate=True, seed=3, progress=False)
    except RaisonError as error:
        return told(error)
    finally:
        assert time.process_time() - start < MOMENT * slowness() * max(1, len(texts) / 4)


def chosen(family: str, name: str) -> list[str]:
    """All texts, or those whose turn it is: every text by one in twelve of the methods."""
    # Not the sum with the family's: those are the turns of the test itself.
    turn = CATALOGUE.names.index(name)
    return [text for place, text in enumerate(NASTY) if ALL or (place + turn) % 12 == 0]


@pytest.mark.in_turn(2 * len(FAMILIES))
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", CATALOGUE.names)
def test_every_text_is_explained_or_refused_in_one_line(
    name: str, family: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAISON_CACHE", str(tmp_path))
    model, call = fuzzed(family), CALLS.get(name, name)
    method = CATALOGUE.create(call)
    if Property.TRAINED in method.properties and not method.lacking(model):
        untrained_for(name_of(method), model, usual_folder(model.name, name_of(method)))
    names = chosen(family, name)
    for refused in (text for text in names if not takes(family, text)):
        assert isinstance(explained(model, [wrapped(model, NASTY[refused])], call), str)
    texts = [wrapped(model, NASTY[text]) for text in names if takes(family, text)]
    together = explained(model, texts, call)
    # What is refused together is refused for the method's or for one text's sake: each says so by itself.
    alone = texts if isinstance(together, str) or ALL else texts[::3]
    for text in alone:
        found = explained(model, [text], call)
        if isinstance(found, str):
            assert isinstance(together, str), f"{text!r:.40} is refused alone: {found}"
            continue
        right(found[0], text)
        if not isinstance(together, str):
            np.testing.assert_allclose(found[0].scores, together[texts.index(text)].scores, **CLOSE)
    if not isinstance(together, str):
        for explanation, text in zip(together, texts, strict=True):
            right(explanation, text)


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("unit", ["token", "word", "sentence"])
@pytest.mark.parametrize("family", ["bert", "gpt2", "t5_encoder", "prompted llama"])
def test_every_view_of_every_text_can_be_written(family: str, unit: str) -> None:
    model = fuzzed(family)
    for name in (name for name in NASTY if takes(family, name)):
        e = raison.explain(model, NASTY[name], "random", unit=unit, truncate=True, progress=False)
        right(e, NASTY[name])
        shown, markup = plain(explanation_text(e)), page(e)
        assert "\x1b" not in shown
        for view in (shown, markup):
            view.encode()
            assert "\x00" not in view
        json.dumps(e.to_dict())
