"""Functions, predictors and asynchronous functions: what they are asked, and what is made of their answers."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline

import raison
from raison.core.errors import (
    DataError,
    InputError,
    NonFiniteError,
    UnknownNameError,
    UnsteadyWarning,
    UnsupportedError,
)
from raison.explaining.diagnosis import doctor
from raison.models.adapters.blackbox.function import BlackBox
from raison.models.derived.identity import identity_of
from raison.models.loading.objects.functions import Agreement
from raison.models.loading.objects.in_memory import from_object
from raison.studies.reports import write
from tests.functions import CLASSES, TEXTS, Counted, overlap, rating, scores, shares

TEXT = TEXTS[0]


@pytest.mark.parametrize(
    "wrap",
    [
        np.asarray,
        list,
        lambda rows: rows.tolist(),
        torch.from_numpy,
        pd.DataFrame,
        lambda rows: torch.tensor(rows),
        lambda rows: [torch.tensor(row, requires_grad=True) for row in rows],
        lambda rows: [[torch.tensor(one, requires_grad=True) for one in row] for row in rows],
    ],
    ids=["numpy", "rows", "lists", "tensor", "frame", "copied tensor", "tensors", "lists of tensors"],
)
def test_any_array_will_do(wrap: object) -> None:
    assert scores(lambda texts: wrap(shares(texts))) == scores(shares)


@pytest.mark.parametrize("wrap", [np.asarray, torch.from_numpy], ids=["numpy", "tensor"])
@pytest.mark.parametrize("batch", [1, 2, 64])
def test_a_buffer_that_the_next_call_overwrites(wrap: object, batch: int) -> None:
    buffer = np.zeros((64, 2))

    def reused(texts: list[str]) -> object:
        buffer[: len(texts)] = shares(texts)
        return wrap(buffer)[: len(texts)]

    assert scores(reused, batch=batch) == scores(shares)


@pytest.mark.parametrize("wrap", [np.asarray, list, torch.from_numpy, pd.Series, lambda column: column[:, None]])
def test_a_number_is_a_column_or_a_row(wrap: object) -> None:
    model = raison.load(lambda texts: wrap(rating(texts)), classes=["rating"])
    assert model.outputs == "number"
    explanation = raison.explain(model, TEXT, "occlusion")
    assert (explanation.outputs, explanation.target) == ("number", "rating")
    assert explanation.value_full == rating([TEXT])[0]


def test_probabilities_are_those_of_the_function() -> None:
    explanation = raison.explain(raison.load(shares, classes=CLASSES), TEXT, "occlusion")
    np.testing.assert_allclose(explanation.probabilities, shares([TEXT])[0], atol=1e-12)
    without_film = shares(["A good, not bad!"])[0, 1] - shares([""])[0, 1]
    assert explanation.units[2].text == "film"
    assert explanation.scores[2] == pytest.approx(shares([TEXT])[0, 1] - shares([""])[0, 1] - without_film)


def test_full_batches_in_the_order_of_the_texts() -> None:
    counted = Counted()
    model = raison.load(counted, classes=CLASSES, batch=10)
    raison.explain(model, TEXT, "random")
    counted.calls.clear()
    raison.explain(model, TEXT, "kernel_shap(samples=64)")
    # The text itself is asked first, to know what it is predicted to be; all 63 others in one go.
    assert counted.sizes == [1, 10, 10, 10, 10, 10, 10, 3]
    asked = [text for call in counted.calls for text in call]
    assert len(set(asked)) == len(asked) == 64


def test_texts_share_batches_and_equal_ones_are_asked_once() -> None:
    counted = Counted()
    model = raison.load(counted, classes=CLASSES)
    raison.explain(model, TEXT, "random")
    counted.calls.clear()
    raison.explain(model, ["good good", "good bad", "bad"], "occlusion")
    assert sorted(counted.calls[0]) == ["bad", "good bad", "good good"]
    # "good" is what is left of two texts.
    assert sorted(counted.calls[1]) == ["", "bad", "good"]
    assert all(len(set(call)) == len(call) for call in counted.calls)


def test_loading_asks_two_texts_and_the_first_text_twice_more() -> None:
    counted = Counted()
    model = raison.load(counted, classes=CLASSES)
    assert counted.sizes == [2]
    raison.explain(model, TEXT, "random")
    assert counted.calls[1:3] == [[TEXT], [TEXT]]


class Slow:
    """An asynchronous function that knows how many of its calls wait at the same time."""

    def __init__(self) -> None:
        self.waiting = self.most = 0
        self.loops: set[int] = set()

    async def __call__(self, texts: list[str]) -> object:
        self.loops.add(id(asyncio.get_running_loop()))
        self.waiting += 1
        self.most = max(self.most, self.waiting)
        # Later batches answer first.
        await asyncio.sleep(0.001 * len(texts[0]))
        self.waiting -= 1
        return shares(texts)


def test_an_asynchronous_function_waits_for_many_batches_at_once() -> None:
    slow = Slow()
    assert scores(slow, batch=1, concurrency=3) == scores(shares)
    assert slow.most == 3
    assert len(slow.loops) == 1


def test_an_asynchronous_function_works_inside_a_loop() -> None:
    async def notebook() -> tuple[float, ...]:
        return scores(Slow())

    # In a thread of its own: a browser of other tests may have a loop in this one.
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(asyncio.run, notebook()).result() == scores(shares)


def test_an_error_of_an_asynchronous_function_stops_the_others() -> None:
    begun: list[str] = []

    async def fragile(texts: list[str]) -> object:
        begun.extend(texts)
        await asyncio.sleep(0.001)
        if len(begun) > 12:
            raise ConnectionError("gone")
        return shares(texts)

    model = raison.load(fragile, classes=CLASSES, batch=1, concurrency=2)
    with pytest.raises(ConnectionError, match="gone") as caught:
        raison.explain(model, TEXT, "kernel_shap(samples=64)")
    assert "raison had called" in caught.value.__notes__[0]
    assert len(begun) < 20


def test_threads_share_a_function() -> None:
    model = raison.load(Slow(), classes=CLASSES)
    found: list[tuple[float, ...]] = []
    threads = [
        threading.Thread(target=lambda: found.append(raison.explain(model, TEXT, "occlusion", progress=False).scores))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert len(set(found)) == 1


def test_a_pipeline_of_scikit_learn_names_its_own_classes() -> None:
    words = ["good film", "bad film", "good", "bad"]
    fitted = make_pipeline(CountVectorizer(), LogisticRegression()).fit(words, ["yes", "no", "yes", "no"])
    model = raison.load(fitted)
    assert (model.classes, model.name) == (("no", "yes"), "Pipeline")
    explanation = raison.explain(model, "a good bad film", "shapley_exact", of="log_odds", target="yes")
    table = dict(zip(fitted[0].get_feature_names_out(), fitted[1].coef_[0], strict=True))
    np.testing.assert_allclose(explanation.scores, [0.0, table["good"], table["bad"], table["film"]], atol=1e-9)
    assert raison.load(fitted, classes=["nein", "ja"]).classes == ("nein", "ja")


def test_a_multi_label_pipeline_of_scikit_learn_is_known_as_one() -> None:
    words = ["good film", "bad film", "good", "bad", "dull"]
    marks = np.array([[1, 1], [0, 1], [1, 0], [0, 0], [0, 0]])
    fitted = make_pipeline(CountVectorizer(), OneVsRestClassifier(LogisticRegression())).fit(words, marks)
    model = raison.load(fitted, classes=["good", "film"])
    assert model.outputs == "labels"
    found = raison.explain(model, "good film", "occlusion", target="film", of="probability")
    assert found.value_full == pytest.approx(fitted.predict_proba(["good film"])[0, 1], abs=1e-9)


def test_predictors_of_scikit_learn_that_cannot_be_loaded() -> None:
    words, marks = ["good film", "bad film", "good"], np.array([[1, 1], [0, 1], [1, 0]])
    several = make_pipeline(CountVectorizer(), MultiOutputClassifier(LogisticRegression())).fit(words, marks)
    for agreed in ({}, {"classes": ["good", "film"], "multi_label": True}):
        with pytest.raises(InputError, match="Pipeline has several outputs.*one row of probabilities"):
            raison.load(several, **agreed)
    with pytest.raises(InputError, match="has no classes_: fit it first"):
        raison.load(make_pipeline(CountVectorizer(), LogisticRegression()))


def test_a_method_of_a_predictor_is_a_function() -> None:
    fitted = make_pipeline(CountVectorizer(), Ridge()).fit(["good", "bad", "good bad"], [1.0, -1.0, 0.5])
    model = raison.load(fitted.predict, classes=["rating"], name="ridge")
    table = dict(zip(fitted[0].get_feature_names_out(), fitted[1].coef_, strict=True))
    found = raison.explain(model, "good bad", "occlusion")
    np.testing.assert_allclose(found.scores, [table["good"], table["bad"]], atol=1e-9)
    assert found.model == "ridge"
    with pytest.raises(InputError, match="predict_proba"):
        from_object(fitted, Agreement(), lambda model, tokenizer: pytest.fail("nothing to adapt"))


def test_pairs() -> None:
    model = raison.load(overlap, classes=["overlap"], pairs=True)
    found = raison.explain(model, ("good film", "not bad"), "shapley_exact")
    np.testing.assert_allclose(found.scores, [1.0, 0.25, -1.0, -2.5], atol=1e-9)
    assert [unit.segment for unit in found.units] == [0, 0, 1, 1]
    with pytest.raises(InputError, match="takes a pair"):
        raison.explain(model, "good film", "occlusion")


def test_removals() -> None:
    model = raison.load(Counted(), classes=CLASSES)
    with pytest.raises(UnsupportedError, match="no tokenizer with such a token.*removal='delete'"):
        raison.explain(model, TEXT, "occlusion", removal="mask")
    with pytest.raises(UnknownNameError, match="Did you mean 'delete'"):
        raison.explain(model, TEXT, "occlusion", removal="delet")
    counted = Counted()
    raison.explain(raison.load(counted, classes=CLASSES), "good film", "occlusion", removal="[MASK]")
    assert {"[MASK] film", "good [MASK]", "[MASK] [MASK]"} <= {text for call in counted.calls for text in call}


def test_metrics_remove_by_a_string_as_well() -> None:
    counted = Counted()
    model = raison.load(counted, classes=CLASSES)
    given = raison.explain(model, "good film", "occlusion")
    [scored] = raison.evaluate(model, given, "comprehensiveness(removal='[MASK]')", progress=False).metrics
    assert np.isfinite(scored.values).all()
    assert any("[MASK]" in text for call in counted.calls for text in call)
    for removal in ("mask", "delet"):
        with pytest.raises(UnsupportedError, match=f"removes by '{removal}', which the model cannot: give removal="):
            raison.evaluate(model, given, f"comprehensiveness(removal='{removal}')", progress=False)


def test_logits_are_not_known() -> None:
    model = raison.load(shares, classes=CLASSES)
    with pytest.raises(UnsupportedError, match="of='log_odds'"):
        raison.explain(model, TEXT, "occlusion", of="logit")


def test_a_probability_of_zero_has_no_logarithm() -> None:
    def sure(texts: list[str]) -> object:
        positive = rating(texts) > 0
        return np.stack([~positive, positive], 1)

    model = raison.load(sure, classes=CLASSES)
    explanation = raison.explain(model, TEXT, "occlusion")
    assert set(explanation.scores) <= {-1.0, 0.0, 1.0}
    assert explanation.probabilities == (0.0, 1.0)
    assert np.isnan(raison.evaluate(model, [explanation], ["log_odds(share=1.0)"])["log_odds(share=1.0)"].values[0])
    with pytest.raises(NonFiniteError, match="of='probability'"):
        raison.explain(model, TEXT, "occlusion", of="log_odds")


def test_dice_are_noticed() -> None:
    dice = np.random.default_rng(0)

    def unsure(texts: list[str]) -> object:
        return dice.dirichlet([1, 1], len(texts))

    model = raison.load(unsure, classes=CLASSES)
    with pytest.warns(UnsteadyWarning, match="unsure.* differ between equal calls"):
        found = raison.explain(model, TEXT, "occlusion")
    assert "differ between equal calls" in str(found.notes["unsteady"])
    assert "equal calls give equal answers" in [one.check for one in doctor(model).checks if not one.passed]


def test_doctor() -> None:
    found = doctor(raison.load(shares, classes=CLASSES))
    assert found.passed
    assert found.facts["class"] == "function of texts"
    assert found.methods["kernel_shap"] == []
    assert "of which only the outputs are known" in found.methods["saliency"][0]
    assert "methods that work: " in str(found)
    numbers = doctor(raison.load(overlap, classes=["overlap"], pairs=True))
    assert numbers.facts["class"] == "function of pairs of texts"


def test_doctor_says_where_a_batch_changes_an_answer() -> None:
    def crowded(texts: list[str]) -> object:
        return rating(texts) + len(texts)

    failed = [one.check for one in doctor(raison.load(crowded, classes=["rating"])).checks if not one.passed]
    assert failed == ["a text gets the same output alone and in a batch"]


def test_doctor_says_where_an_empty_text_is_not_answered() -> None:
    def strict(texts: list[str]) -> object:
        if "" in texts:
            raise ValueError("nothing to read")
        return rating(texts)

    failed = [one for one in doctor(raison.load(strict, classes=["rating"])).checks if not one.passed]
    assert [one.check for one in failed] == ["a text without words is accepted"]
    assert "nothing to read" in failed[0].detail


def test_identity_is_the_name_the_classes_and_the_answers() -> None:
    def identity(function: object, **agreed: object) -> dict[str, str]:
        model = raison.load(function, **{"classes": ["rating"], "name": "r"} | agreed)
        assert isinstance(model, BlackBox)
        return identity_of(model)

    same = identity(rating)
    assert identity(lambda texts: rating(texts)) == same
    assert identity(rating, name="other") != same
    assert identity(rating, classes=["stars"]) != same
    assert identity(lambda texts: rating(texts) + 1) != same


def test_a_comparison_goes_on_with_the_same_function_only(tmp_path: Path) -> None:
    def compared(function: object, texts: list[str]) -> raison.Comparison:
        model = raison.load(function, classes=["rating"], name="r")
        return raison.compare(model, texts, ["occlusion", "lime"], ["comprehensiveness"], out=tmp_path / "run")

    texts = list(TEXTS)
    first = compared(rating, texts)
    counted = Counted(rating)
    assert compared(counted, texts).rows == first.rows
    assert sum(counted.sizes) < 10
    with pytest.raises(DataError, match="answers of the function"):
        compared(lambda texts: rating(texts) + 1, texts)


def test_a_comparison_takes_the_usual_methods_that_work() -> None:
    found = raison.compare(raison.load(shares, classes=CLASSES), list(TEXTS))
    assert {row.method for row in found.rows} == {"kernel_shap", "lime", "occlusion", "random"}


def test_an_audit_says_what_is_left_out(tmp_path: Path) -> None:
    model = raison.load(shares, classes=CLASSES)
    texts = [f"{text} {number}" for text in TEXTS for number in range(6)]
    found = raison.audit(model, texts, ["kernel_shap(samples=32)", "occlusion"], out=tmp_path / "audit")
    lights = {one.method: {part.question: part.light for part in one.evidence} for one in found.methods}
    assert set(lights) == {"kernel_shap(samples=32)", "occlusion"}
    for of_method in lights.values():
        assert of_method["parameters"] == of_method["attacks"] == "grey"
        assert of_method["faithful"] in ("green", "amber", "red")
    told = dict(found.left_out)
    assert "whose parameters are unknown" in told["occlusion, randomised"]
    assert "occlusion, attacked by shifted embeddings" in told
    assert "no embeddings" in told["occlusion, attacked by exchanged words"]
    page = write(tmp_path / "audit", draw=False).read_text(encoding="utf-8")
    assert "of which only the outputs are known" in page
    assert "Randomised blocks" not in page


def test_views_show_a_function_as_any_model() -> None:
    explanation = raison.explain(raison.load(shares, classes=CLASSES), TEXT, "occlusion")
    assert "test_functions" not in str(explanation)
    assert "shares" in explanation.to_html()
    assert explanation.prediction in str(explanation)


def test_a_mapping_is_no_list_of_classes() -> None:
    """Its keys would be the names."""
    with pytest.raises(InputError, match="classes is a mapping: give a list in the order of the columns"):
        raison.load(shares, classes=dict(enumerate(CLASSES)))
