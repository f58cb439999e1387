"""Functions whose answers are not what was agreed, and settings that do not fit."""

import asyncio

import numpy as np
import pytest

import raison
from raison.core.errors import AnswerError, InputError, NonFiniteError
from raison.models.loading.objects.functions import Agreement
from raison.models.loading.objects.in_memory import from_object
from tests.functions import CLASSES, Counted, rating, scores, shares


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (lambda texts: rating(texts), r"shape \(2,\) for 2 texts"),
        (lambda texts: shares(texts)[:1], r"shape \(1, 2\) for 2 texts"),
        (lambda texts: shares(texts).T[:, :1], r"shape \(2, 1\) for 2 texts"),
        (lambda texts: [["a", "b"]] * len(texts), "not an array of numbers"),
        (lambda texts: None, "returned None"),
        (lambda texts: [{"label": "good", "score": 0.5}] * len(texts), "a mapping with the keys label, score"),
        (lambda texts: shares(texts) * 3, "are not probabilities"),
        (lambda texts: shares(texts) * 0.9, "sum to 0.9 instead of 1.*multi_label=True"),
        (lambda texts: np.log(shares(texts)), "are not probabilities"),
    ],
)
def test_what_was_not_agreed_is_refused_when_it_is_loaded(function: object, told: str) -> None:
    with pytest.raises(AnswerError, match=told) as caught:
        raison.load(function, classes=CLASSES)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_no_number_is_refused_where_it_appears(bad: float) -> None:
    def fragile(texts: list[str]) -> object:
        return [[bad, 1.0] if text == "A good film, bad!" else shares([text])[0] for text in texts]

    with pytest.raises(NonFiniteError, match="NaN or infinite numbers for 'A good film, bad!'"):
        scores(fragile)


def test_a_row_too_few_later_is_refused_too() -> None:
    with pytest.raises(AnswerError, match="in the order of the texts"):
        scores(lambda texts: shares(texts)[: max(2, len(texts) - 1)] if len(texts) > 2 else shares(texts))


def test_an_error_passes_through_with_a_line_of_context() -> None:
    def fragile(texts: list[str]) -> object:
        raise KeyError("no such key")

    with pytest.raises(KeyError, match="no such key") as caught:
        raison.load(fragile, classes=CLASSES)
    (note,) = caught.value.__notes__
    assert note.startswith("raison had called ")
    assert "fragile" in note
    assert "\n" not in note


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"classes": None}, "classes of shares are not known"),
        ({"classes": []}, "classes of shares are not known"),
        ({"classes": "yes"}, "classes is the string 'yes'"),
        ({"classes": ["a", "a"]}, "same name"),
        ({"batch": 0}, "batch cannot be 0"),
        ({"concurrency": -1}, "concurrency cannot be -1"),
        ({"device": "cpu"}, "apply to transformers models"),
        ({"prompt": "sst2"}, "apply to transformers models"),
    ],
)
def test_settings_that_do_not_fit(given: dict[str, object], told: str) -> None:
    with pytest.raises(InputError, match=told):
        raison.load(shares, **{"classes": CLASSES} | given)


def test_settings_of_functions_are_not_for_models() -> None:
    with pytest.raises(InputError, match="classes, batch apply to functions"):
        raison.load("demo/sst2", classes=["no", "yes"], batch=3)


@pytest.mark.parametrize("thing", [3, None, ["good"], {}, object()])
def test_what_is_no_model_is_refused(thing: object) -> None:
    with pytest.raises(InputError, match="is not a model"):
        from_object(thing, Agreement(), lambda model, tokenizer: pytest.fail("nothing to adapt"))


def test_a_class_is_no_function() -> None:
    with pytest.raises(InputError, match="Counted is a class"):
        raison.load(Counted, classes=CLASSES)


def test_names_of_an_object_in_another_order_than_its_columns_are_refused() -> None:
    class Fitted:
        classes_ = ("bad", "good")

        def predict_proba(self, texts: list[str]) -> np.ndarray:
            return shares(texts)

    with pytest.raises(InputError, match=r"in another order than the columns of predict_proba \(bad, good\)"):
        raison.load(Fitted(), classes=["good", "bad"])
    assert raison.load(Fitted(), classes=["bad", "good"]).classes == ("bad", "good")
    assert raison.load(Fitted(), classes=["dull", "fine"]).classes == ("dull", "fine")


def test_a_timeout_of_an_asynchronous_function_names_its_texts() -> None:
    async def slow(texts: list[str]) -> list[list[float]]:
        if any("zap" in text for text in texts):
            await asyncio.wait_for(asyncio.sleep(5), 0.01)
        return [[0.5, 0.5]] * len(texts)

    with pytest.raises(TimeoutError) as caught:
        raison.explain(raison.load(slow, classes=["a", "b"]), "zap old", "occlusion")
    (note,) = caught.value.__notes__
    assert note.endswith("with the text 'zap old'.")
