"""Pipelines of transformers and models of sentence-transformers, taken as they are."""

import copy
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import pipeline

import raison
from raison.core.errors import InputError, LoadError, UnsupportedError
from raison.core.method import Property
from raison.methods import CATALOGUE
from raison.models.adapters.blackbox.function import BlackBox
from raison.models.adapters.checks.selfcheck import selfcheck
from raison.models.adapters.classifier import Classifier
from raison.models.adapters.writing.generator import Generator
from tests.contracts.test_methods import SHORTER
from tests.contracts.test_numbers import refused
from tests.tiny import TINY, build, build_embedder, build_language_model

TEXT = "The old sailor told a modest story about the sea."


@pytest.mark.parametrize("family", ["bert", "gpt2", "llama", "roberta"])
def test_a_classification_pipeline_is_its_model_and_tokenizer(family: str) -> None:
    model, tokenizer = TINY[family]()
    before = copy.deepcopy(model.state_dict())
    pipe = pipeline("text-classification", model=model, tokenizer=tokenizer)
    loaded = raison.load(pipe)
    assert isinstance(loaded, Classifier)
    assert loaded.model is model
    explanation = raison.explain(loaded, TEXT, "integrated_gradients(steps=4)")
    said = {one["label"]: one["score"] for one in pipe(TEXT, top_k=None)}
    np.testing.assert_allclose(explanation.probabilities, [said[name] for name in explanation.classes], atol=1e-5)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


@pytest.mark.parametrize(
    ("labels", "problem", "outputs"),
    [(("a", "b", "c"), "multi_label_classification", "labels"), (("rating",), "regression", "number")],
)
def test_labels_and_numbers_are_told_by_the_model(labels: tuple[str, ...], problem: str, outputs: str) -> None:
    model, tokenizer = build("bert", labels, problem)
    loaded = raison.load(pipeline("text-classification", model=model, tokenizer=tokenizer))
    assert isinstance(loaded, Classifier)
    assert loaded.outputs == outputs


def test_logits_in_place_of_probabilities_are_the_models_own() -> None:
    model, tokenizer = TINY["bert"]()
    pipe = pipeline("text-classification", model=model, tokenizer=tokenizer, function_to_apply="none")
    assert isinstance(raison.load(pipe), Classifier)


def test_other_numbers_make_it_a_function() -> None:
    # One output is a number to raison; the pipeline squashes it.
    model, tokenizer = build("bert", ("score",))
    pipe = pipeline("text-classification", model=model, tokenizer=tokenizer)
    loaded = raison.load(pipe)
    assert isinstance(loaded, BlackBox)
    assert (loaded.outputs, loaded.classes) == ("number", ("score",))
    explanation = raison.explain(loaded, TEXT, "occlusion")
    assert explanation.value_full == pytest.approx(pipe(TEXT)[0]["score"])
    with pytest.raises(UnsupportedError, match="not those of its model and tokenizer"):
        raison.explain(loaded, TEXT, "saliency")


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"truncation": True, "max_length": 4}, TEXT),
        # Longer than the texts on which outputs are compared.
        ({"truncation": True, "max_length": 12}, f"{TEXT} {TEXT} {TEXT}"),
        ({"function_to_apply": "sigmoid"}, TEXT),
    ],
)
def test_a_pipeline_with_settings_of_its_own_is_a_function(settings: dict[str, object], text: str) -> None:
    model, tokenizer = TINY["bert"]()
    pipe = pipeline("text-classification", model=model, tokenizer=tokenizer, **settings)
    loaded = raison.load(pipe)
    assert isinstance(loaded, BlackBox)
    (row,) = [raison.explain(loaded, text, "random").probabilities]
    said = {one["label"]: one["score"] for one in pipe(text, top_k=None)}
    np.testing.assert_allclose(row, [said[name] for name in loaded.classes], atol=1e-6)


def test_the_only_label_of_a_pipeline_that_cuts_texts_is_a_label() -> None:
    model, tokenizer = build("bert", ("toxic",), problem="multi_label_classification")
    pipe = pipeline("text-classification", model=model, tokenizer=tokenizer, truncation=True, max_length=4)
    loaded = raison.load(pipe)
    assert isinstance(loaded, BlackBox)
    assert (loaded.outputs, loaded.classes) == ("labels", ("toxic",))


def test_a_pipeline_that_cuts_texts_where_its_model_ends_is_the_model() -> None:
    model, tokenizer = TINY["bert"]()
    most = raison.load(model, tokenizer).max_tokens
    pipe = pipeline("text-classification", model=model, tokenizer=tokenizer, truncation=True, max_length=most)
    assert isinstance(raison.load(pipe), Classifier)


@pytest.mark.parametrize("multi_label", [False, True])
def test_zero_shot(multi_label: bool) -> None:
    model, tokenizer = build("bert", ("contradiction", "neutral", "entailment"))
    pipe = pipeline("zero-shot-classification", model=model, tokenizer=tokenizer)
    labels = ["sea", "politics", "sport"]
    loaded = raison.load(pipe, classes=labels, multi_label=multi_label)
    assert loaded.outputs == ("labels" if multi_label else "classes")
    explanation = raison.explain(loaded, TEXT, "occlusion")
    said = pipe(TEXT, candidate_labels=labels, multi_label=multi_label)
    expected = dict(zip(said["labels"], said["scores"], strict=True))
    np.testing.assert_allclose(explanation.probabilities, [expected[name] for name in labels], atol=1e-6)
    with pytest.raises(InputError, match="needs the labels"):
        raison.load(pipe)


def test_text_generation() -> None:
    model, tokenizer = build_language_model("gpt2")
    loaded = raison.load(pipeline("text-generation", model=model, tokenizer=tokenizer))
    assert isinstance(loaded, Generator)
    assert loaded.model is model
    with pytest.raises(LoadError, match="does not read prompts as its tokenizer does"):
        raison.load(pipeline("text-generation", model=model, tokenizer=tokenizer, prefix="Once upon a time, "))


def test_other_tasks_are_refused() -> None:
    model, tokenizer = build("bert")
    pipe = pipeline("feature-extraction", model=model, tokenizer=tokenizer)
    with pytest.raises(LoadError, match="a pipeline for feature-extraction is not supported"):
        raison.load(pipe)


@pytest.mark.parametrize("given", [{"device": "cpu"}, {"classes": ["a", "b", "c"]}, {"prompt": "sst2"}])
def test_settings_that_a_pipeline_has_itself(given: dict[str, object]) -> None:
    model, tokenizer = build("bert")
    with pytest.raises(InputError):
        raison.load(pipeline("text-classification", model=model, tokenizer=tokenizer), **given)


@pytest.fixture
def cross_encoders(tmp_path: Path) -> object:
    """Makes a cross-encoder with this many outputs."""
    sentence_transformers = pytest.importorskip("sentence_transformers")

    def make(labels: tuple[str, ...], **settings: object) -> object:
        model, tokenizer = build("bert", labels)
        folder = tmp_path / str(len(labels))
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        return sentence_transformers.CrossEncoder(str(folder), **settings)

    return make


PAIR = ("who told a story ?", TEXT)


def test_a_cross_encoder_is_a_classifier_of_pairs(cross_encoders: object) -> None:
    encoder = cross_encoders(("a", "b", "c"))
    loaded = raison.load(encoder)
    assert isinstance(loaded, Classifier)
    assert loaded.model is encoder.model
    explanation = raison.explain(loaded, PAIR, "integrated_gradients(steps=4)")
    np.testing.assert_allclose(explanation.probabilities, encoder.predict([PAIR], apply_softmax=True)[0], atol=1e-5)


def test_a_cross_encoder_that_reads_little_cuts_the_probes(cross_encoders: object) -> None:
    encoder = cross_encoders(("a", "b", "c"), max_length=9)
    loaded = raison.load(encoder)
    assert isinstance(loaded, Classifier)
    assert loaded.max_tokens == 9


def test_a_cross_encoder_of_one_number(cross_encoders: object) -> None:
    plain = cross_encoders(("score",), activation_fn=torch.nn.Identity())
    loaded = raison.load(plain)
    assert isinstance(loaded, Classifier)
    assert loaded.outputs == "number"
    unknown = cross_encoders(("score",), activation_fn=Halved())
    loaded = raison.load(unknown)
    assert isinstance(loaded, BlackBox)
    assert (loaded.outputs, loaded.pairs) == ("number", True)
    explanation = raison.explain(loaded, PAIR, "occlusion")
    assert explanation.value_full == pytest.approx(unknown.predict([PAIR])[0])


class Halved(torch.nn.Module):
    def forward(self, scores: torch.Tensor) -> torch.Tensor:
        return scores / 2


def test_the_gradient_of_a_squashed_number_is_that_of_the_squashed_number(cross_encoders: object) -> None:
    squashed = cross_encoders(("score",))
    loaded, raw = raison.load(squashed), raison.load(squashed.model, squashed.tokenizer)
    assert isinstance(loaded, Classifier)
    assert loaded.model is squashed.model
    assert all(finding.passed for finding in selfcheck(loaded))
    score = float(squashed.predict([PAIR])[0])
    whole = raison.explain(loaded, PAIR, "input_x_gradient", progress=False)
    before = raison.explain(raw, PAIR, "input_x_gradient", progress=False)
    assert (whole.outputs, whole.value_full) == ("number", pytest.approx(score, abs=1e-6))
    # The slope of a sigmoid.
    np.testing.assert_allclose(whole.scores, np.array(before.scores) * score * (1 - score), rtol=1e-4, atol=1e-7)
    path = raison.explain(loaded, PAIR, "integrated_gradients(steps=100)", progress=False)
    assert sum(path.scores) == pytest.approx(path.value_full - path.value_empty, abs=1e-4)
    for name in CATALOGUE.names:
        method = CATALOGUE.create(SHORTER.get(name, name))
        if refused(loaded, method):
            continue
        e = raison.explain(loaded, ("who ?", "dull"), method, progress=False)
        assert np.isfinite(e.scores).all()
        if Property.COMPLETE in method.properties:
            assert e.completeness_gap == pytest.approx(e.notes.get("completeness_gap", 0.0), abs=1e-3)
    with pytest.raises(UnsupportedError, match="Sigmoid"):
        raison.explain(loaded, PAIR, "decompx", progress=False)


@pytest.fixture
def sentence_transformers_of(tmp_path: Path) -> object:
    """Makes a SentenceTransformer of a tiny model, with these modules after it."""
    made = pytest.importorskip("sentence_transformers.sentence_transformer.modules")
    whole = pytest.importorskip("sentence_transformers")

    def make(*modules: object, family: str = "bert", **settings: object) -> object:
        model, tokenizer = build_embedder(family)
        model.save_pretrained(tmp_path / family)
        tokenizer.save_pretrained(tmp_path / family)
        first = made.Transformer(str(tmp_path / family))
        return whole.SentenceTransformer(modules=[first, *modules], device="cpu", **settings)

    return make


def similarity_of(model: object, pair: tuple[str, str]) -> float:
    vectors = model.encode(list(pair))
    return float(model.similarity(vectors[:1], vectors[1:])[0, 0])


@pytest.mark.in_turn(6)
@pytest.mark.parametrize("family", ["bert", "roberta", "qwen3", "t5_encoder"])
@pytest.mark.parametrize("pooling", ["mean", "cls", "max", "lasttoken"])
@pytest.mark.parametrize("further", ["", "normalize", "dense, normalize"])
def test_a_sentence_transformer_and_its_folder(
    sentence_transformers_of: object, tmp_path: Path, family: str, pooling: str, further: str
) -> None:
    from sentence_transformers.base.modules import Dense, Normalize
    from sentence_transformers.sentence_transformer.modules import Pooling

    torch.manual_seed(0)
    modules = {"": [], "normalize": [Normalize()], "dense, normalize": [Dense(32, 16), Normalize()]}[further]
    model = sentence_transformers_of(Pooling(32, pooling), *modules, family=family)
    model.similarity_fn_name = "cosine" if further == "normalize" else "dot"
    model.save(str(tmp_path / "saved"))
    wanted = similarity_of(model, PAIR)
    for loaded in (raison.load(model), raison.load(tmp_path / "saved")):
        assert isinstance(loaded, Classifier)
        e = raison.explain(loaded, PAIR, "occlusion", progress=False)
        assert e.value_full == pytest.approx(wanted, abs=1e-6 * max(1, abs(wanted)))


def test_a_sentence_transformer_that_does_more_is_a_function(sentence_transformers_of: object, tmp_path: Path) -> None:
    from sentence_transformers.sentence_transformer.modules import Pooling

    prompted = sentence_transformers_of(
        Pooling(32, "mean"), prompts={"own": "the old sailor : "}, default_prompt_name="own"
    )
    several = sentence_transformers_of(Pooling(32, ["mean", "max"]))
    distance = sentence_transformers_of(Pooling(32, "mean"), similarity_fn_name="euclidean")
    for model in (prompted, several, distance):
        loaded = raison.load(model)
        assert isinstance(loaded, BlackBox)
        assert (loaded.classes, loaded.outputs, loaded.pairs) == (("similarity",), "number", True)
        e = raison.explain(loaded, PAIR, "occlusion", progress=False)
        assert e.value_full == pytest.approx(similarity_of(model, PAIR), abs=1e-5)
    prompted.save(str(tmp_path / "prompted"))
    several.save(str(tmp_path / "several"))
    with pytest.raises(LoadError, match="puts a prompt before each text"):
        raison.load(tmp_path / "prompted")
    with pytest.raises(LoadError, match="combines several kinds"):
        raison.load(tmp_path / "several")


def test_a_sentence_transformer_with_prompts_for_each_side(sentence_transformers_of: object) -> None:
    from sentence_transformers.sentence_transformer.modules import Pooling

    prompts = {"query": "the old sailor : ", "document": "story : "}
    model = sentence_transformers_of(Pooling(32, "mean"), prompts=prompts)
    loaded = raison.load(model)
    assert isinstance(loaded, BlackBox)
    vectors = model.encode_query(PAIR[0]), model.encode_document(PAIR[1])
    wanted = float(model.similarity_pairwise(*(torch.tensor(one)[None] for one in vectors))[0])
    assert raison.explain(loaded, PAIR, "occlusion", progress=False).value_full == pytest.approx(wanted, abs=1e-5)
    assert wanted != pytest.approx(similarity_of(model, PAIR), abs=1e-4)
