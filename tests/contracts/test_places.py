"""Models that predict at places of a text, taggers and masked language models: their adapters, methods and numbers."""

import copy
import threading
import warnings
from pathlib import Path

import pytest
import torch
from captum.attr import LayerIntegratedGradients
from transformers import AutoModelForMaskedLM, AutoModelForTokenClassification, pipeline

import raison
from raison.core.capabilities.embeddings import WordEmbeddings
from raison.core.capabilities.passes import Passes
from raison.core.errors import DataError, InputError, RaisonError, UnknownNameError, UnsupportedError
from raison.core.results.explanation import Explanation
from raison.core.targets.target import Target
from raison.methods import CATALOGUE
from raison.models.adapters.classifier import Classifier
from raison.report.explanations.several import are_targets
from raison.report.explanations.terminal import explanation_text
from raison.report.style.terminal_text import plain
from tests.contracts.test_methods import SHORTER
from tests.tiny import FILLERS, TAGGERS, TAGS, TEXTS, build_at_places

CASES = [("tags", family) for family in TAGGERS] + [("masks", family) for family in FILLERS]
STRATEGIES = ("none", "simple", "first", "average", "max")


def load(kind: str, family: str, aggregation: str | None = None) -> Classifier:
    auto = AutoModelForTokenClassification if kind == "tags" else AutoModelForMaskedLM
    loaded = raison.load(*build_at_places(family, auto, TAGS), aggregation=aggregation)
    assert isinstance(loaded, Classifier)
    return loaded


def texts_of(model: Classifier) -> list[str]:
    """Texts of different lengths that the model takes, masks in the middle."""
    if "other words" not in model.classes:
        return list(TEXTS)
    mask = model.tokenizer.mask_token
    return [f"The old {mask} told a modest story.", f"A {mask} plot!", f"I {mask} this so {mask}, did they?"]


@pytest.fixture(params=CASES, ids="-".join)
def model(request: pytest.FixtureRequest) -> Classifier:
    return load(*request.param)


def test_a_text_in_a_batch_is_a_text_alone_and_embeddings_change_nothing(model: Classifier) -> None:
    encoding = model.encode(texts_of(model))
    run = model.ask(Passes).logits
    with torch.no_grad():
        together = run(encoding)
        alone = torch.cat([run(encoding.select([text])) for text in range(3)])
        given = run(encoding, model.ask(WordEmbeddings).embed(encoding))
    assert together.std(0).max() > 1e-3, "a model that ignores its input would pass"
    torch.testing.assert_close(together, alone, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(together, given, atol=1e-5, rtol=1e-5)
    keeps = [torch.ones(1, count, dtype=torch.bool) for count in encoding.unit_counts]
    assert "delete" not in model.removals
    for removal in model.removals:
        kept = torch.cat(model.masked_logits(encoding, keeps, removal))
        torch.testing.assert_close(kept, together, atol=1e-5, rtol=1e-5)


def test_logits_of_one_place_are_the_models_own_and_probabilities_add_up(model: Classifier) -> None:
    encoding = model.encode(texts_of(model))
    assert encoding.reading is not None
    with torch.no_grad():
        found = model.ask(Passes).logits(encoding).double()
        for text in range(3):
            ids = encoding.input_ids[text : text + 1, : encoding.lengths[text]]
            own = model.model(input_ids=ids).logits[0].double()
            places, weights = encoding.spans[text], encoding.reading.weights[text]
            shares = own.softmax(-1)[places].gather(1, encoding.reading.choices[text])
            expected = (weights[:, None] * shares).sum(0)
            classes = len(expected)
            torch.testing.assert_close(found[text].softmax(-1)[:classes], expected, atol=1e-5, rtol=1e-4)
            if (weights > 0).sum() == 1:
                raw = own[places[0]][encoding.reading.choices[text, 0]]
                torch.testing.assert_close(found[text, :classes], raw, atol=1e-5, rtol=1e-5)


def test_gradients_agree_with_finite_differences(model: Classifier) -> None:
    model.model.double()
    encoding = model.encode(texts_of(model))
    embeds = model.ask(WordEmbeddings).embed(encoding)
    one, target = torch.ones(1), Target(torch.zeros(3, dtype=torch.long), None, "log_odds")
    sums, _ = model.ask(WordEmbeddings).path_gradients(encoding, lambda t, _: embeds[t : t + 1], one, one, target)
    direction = torch.randn(embeds.shape, generator=torch.Generator().manual_seed(1), dtype=embeds.dtype)
    step = 1e-4
    with torch.no_grad():
        ahead, behind = (
            target.scalar(model.ask(Passes).logits(encoding, embeds + s * step * direction)) for s in (1, -1)
        )
    for text, (gradient, slope) in enumerate(zip(sums, (ahead - behind) / (2 * step), strict=True)):
        expected = (gradient * direction[text, : len(gradient)]).sum().item()
        assert slope.item() == pytest.approx(expected, rel=5e-3, abs=1e-4)


def test_nothing_is_changed_and_threads_agree() -> None:
    for kind in ("tags", "masks"):
        model = load(kind, "bert")
        texts = texts_of(model)
        before, state = copy.deepcopy(model.model.state_dict()), torch.get_rng_state()
        alone = [raison.explain(model, text, "integrated_gradients") for text in texts]
        found: dict[int, Explanation] = {}

        def explain(number: int, model: Classifier = model, found: dict[int, Explanation] = found) -> None:
            found[number] = raison.explain(model, texts_of(model)[number], "integrated_gradients")

        threads = [threading.Thread(target=explain, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for number, e in enumerate(alone):
            assert found[number].scores == pytest.approx(e.scores, abs=1e-6)
            assert abs(e.completeness_gap) < 0.02
        assert all(torch.equal(value, before[name]) for name, value in model.model.state_dict().items())
        assert torch.equal(state, torch.get_rng_state())
        assert not model.model.training


@pytest.mark.parametrize("kind", ["tags", "masks"])
@pytest.mark.parametrize("name", CATALOGUE.names)
def test_every_method_works_or_is_refused(kind: str, name: str) -> None:
    model = load(kind, "bert")
    text = "A boring plot!" if kind == "tags" else "A boring [MASK]!"
    target = (2, 8) if kind == "tags" else None
    try:
        e = raison.explain(model, text, SHORTER.get(name, name), target=target)
    except UnsupportedError:
        return
    except RaisonError as refusal:
        if "no trained" not in str(refusal):
            raise
        return
    assert len(e.scores) == len(e.units) == (4 if kind == "tags" else 3)
    # A lasso may drop effects as small as those of one word among a whole vocabulary.
    assert max(map(abs, e.scores)) > 0 or name == "context_cite"
    assert Explanation.from_json(e.to_json()) == e


@pytest.mark.filterwarnings("ignore:Tokenizer does not support real words")
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("family", TAGGERS)
def test_entities_and_their_probabilities_are_the_pipelines(family: str, strategy: str) -> None:
    built = build_at_places(family, AutoModelForTokenClassification, TAGS)
    pipe = pipeline("token-classification", model=built[0], tokenizer=built[1], aggregation_strategy=strategy)
    wanted = [
        [
            (
                one.get("entity_group") or one["entity"].split("-")[-1],
                text[one["start"] : one["end"]].strip(),
                pytest.approx(float(one["score"]), abs=1e-5),
            )
            for one in pipe(text)
            if text[one["start"] : one["end"]].strip()
        ]
        for text in TEXTS
    ]
    for model in (raison.load(pipe), raison.load(*built, aggregation=strategy)):
        each = raison.explain(model, TEXTS, "random", target="each", progress=False)
        found = [[(e.target, e.place and e.place.text, e.value_full) for e in of_text] for of_text in each]
        assert found == wanted
    if family == "bert":
        assert sum(map(len, wanted)) > 1


@pytest.mark.parametrize(
    ("family", "strategy"), [("roberta", "none"), ("modernbert", "none"), ("modernbert", "simple")]
)
def test_of_entities_that_share_their_characters_each_type_is_explained_once(family: str, strategy: str) -> None:
    """A tokenizer of bytes splits a character into tokens, which have its span."""
    face, heart, tone = "\N{GRINNING FACE}", "\N{HEAVY BLACK HEART}", "\N{EMOJI MODIFIER FITZPATRICK TYPE-4}"
    text = f"  I love this {face} so much {heart} \N{THUMBS UP SIGN}{tone}."
    built = build_at_places(family, AutoModelForTokenClassification, TAGS)
    pipe = pipeline("token-classification", model=built[0], tokenizer=built[1], aggregation_strategy=strategy)
    surest: dict[tuple[str, str, int], float] = {}
    places = []
    for one in pipe(text):
        whole = text[one["start"] : one["end"]]
        if whole.strip():
            name = one.get("entity_group") or one["entity"].split("-")[-1]
            places.append((whole.strip(), one["start"] + len(whole) - len(whole.lstrip())))
            key = (name, *places[-1])
            surest[key] = max(surest.get(key, 0.0), float(one["score"]))
    assert len({*places}) < len(places)
    each = raison.explain(raison.load(pipe), text, "occlusion", target="each", progress=False)
    found = {(e.target, e.place.text, e.place.start): e.value_full for e in each if e.place is not None}
    assert len(found) == len(each)
    assert found == pytest.approx(surest, abs=1e-5)


@pytest.mark.parametrize("family", FILLERS)
def test_words_at_masks_are_the_pipelines(family: str) -> None:
    built = build_at_places(family, AutoModelForMaskedLM)
    pipe = pipeline("fill-mask", model=built[0], tokenizer=built[1])
    model = raison.load(pipe)
    text = texts_of(model)[0]
    e = raison.explain(model, text, "occlusion")
    best, second = pipe(text, top_k=2)
    assert e.prediction == e.target == best["token_str"].strip()
    assert e.probabilities[:2] == pytest.approx((best["score"], second["score"]), abs=1e-5)
    assert e.place is not None
    assert text[e.place.start : e.place.end].strip() == built[1].mask_token
    assert built[1].mask_token not in {unit.text for unit in e.units}


def test_entities_of_a_text_share_their_evaluations() -> None:
    model, run = load("tags", "deberta_v2"), [0]
    model.model.register_forward_pre_hook(
        lambda _module, _args, kwargs: run.__setitem__(0, run[0] + len(kwargs["input_ids"])), with_kwargs=True
    )
    each = raison.explain(model, TEXTS[0], "occlusion", target="each")
    run[0] = 0
    again = raison.explain(model, TEXTS[0], "occlusion", target="each")
    assert len(each) > 5
    # The whole text three times (its entities are found twice), each word away, and nothing.
    assert run[0] <= 3 + len(each[0].units) + 2
    for e, other in zip(each, again, strict=True):
        assert e.place is not None
        alone = raison.explain(model, TEXTS[0], "occlusion", target=(e.place.start, e.place.end, e.target))
        assert alone.place == e.place == other.place
        assert alone.scores == pytest.approx(e.scores, abs=1e-5)


def test_a_tags_gradients_are_those_of_captum() -> None:
    model = load("tags", "bert", "none")
    text = TEXTS[0]
    e = raison.explain(model, text, "integrated_gradients(steps=200)", unit="token", target=(8, 9, "LOC"), of="logit")
    encoding = model.encode([text], "token")
    token = next(t for t in range(encoding.lengths[0]) if encoding.offsets[0, t].tolist()[0] == 8)
    number = TAGS.index("B-LOC")

    def own(ids: torch.Tensor) -> torch.Tensor:
        return model.model(input_ids=ids).logits[:, token]

    tags = own(encoding.input_ids)[0].argmax()
    number = TAGS.index(f"{TAGS[tags][:2]}LOC") if TAGS[tags] != "O" else number
    baseline = torch.where(encoding.scored, model.tokenizer.mask_token_id, encoding.input_ids)
    found = LayerIntegratedGradients(own, model.core.get_input_embeddings()).attribute(
        encoding.input_ids, baseline, target=number, n_steps=200
    )
    scores = found.sum(-1)[0][encoding.scored[0]]
    assert e.scores == pytest.approx(scores.tolist(), abs=2e-3)


def test_targets_of_tags() -> None:
    model = load("tags", "bert")
    span = raison.explain(model, TEXTS[0], "occlusion", target=(4, 14))
    named = raison.explain(model, TEXTS[0], "occlusion", target="old sailor")
    assert span.place == named.place
    assert span.scores == named.scores
    assert (span.place.start, span.place.end, span.place.text) == (4, 14, "old sailor")
    one, other = (raison.explain(model, TEXTS[0], "occlusion", target=(4, 14, tag)) for tag in ("PER", "B-LOC"))
    pair = raison.explain(model, TEXTS[0], "occlusion", target=(4, 14, ("PER", "LOC")))
    assert (pair.target, pair.against) == ("PER", "LOC")
    assert pair.scores == pytest.approx([a - b for a, b in zip(one.scores, other.scores, strict=True)], abs=1e-6)
    tag = next(tag for tag in ("PER", "LOC") if tag != span.target)
    of_tag = raison.explain(model, TEXTS[0], "occlusion", target=(4, 14, tag))
    for pair_of, sign in (((None, tag), 1), ((tag, None), -1)):
        e = raison.explain(model, TEXTS[0], "occlusion", target=(4, 14, pair_of))
        assert e.value_full == pytest.approx(sign * (span.value_full - of_tag.value_full), abs=1e-6)
    assert one.probabilities == other.probabilities
    assert sum(one.probabilities) == pytest.approx(1)
    judged = raison.evaluate(model, [one, other], "sufficiency(removal='mask')", progress=False)
    assert set(judged.by_target) == {"PER", "LOC"}
    for wrong, error in ((("a", "b"), InputError), ("ship", InputError), ((90, 95), InputError)):
        with pytest.raises(error):
            raison.explain(model, TEXTS[0], "occlusion", target=wrong)
    with pytest.raises(UnknownNameError, match="ORG"):
        raison.explain(model, TEXTS[0], "occlusion", target=(4, 14, "ORG"))
    with pytest.raises(InputError, match="this is a pair"):
        raison.explain(model, ("one", "two"), "occlusion")
    with pytest.raises(UnsupportedError, match="a deleted token has none"):
        raison.explain(model, TEXTS[0], "occlusion", removal="delete")
    with pytest.raises(InputError, match="aggregation= applies to token classification models"):
        load("masks", "bert", "first")


def test_what_cannot_be_measured_of_places_is_refused_before_anything_runs() -> None:
    model = load("tags", "bert")
    passes: list[int] = []
    model.model.register_forward_pre_hook(lambda *_: passes.append(1))
    with pytest.raises(UnsupportedError, match="simulatability needs predictions of whole texts"):
        raison.compare(model, [f"{text} {n}" for n in range(4) for text in TEXTS], "occlusion", "simulatability")
    for method, why in (("rpi", "not at one row"), ("decompx", "positions that differ")):
        with pytest.raises(UnsupportedError, match=why):
            raison.explain(model, TEXTS[0], method)
    assert not passes


def test_the_views_name_entities_and_words(tmp_path: Path) -> None:
    model = load("tags", "bert")
    e = raison.explain(model, TEXTS[0], "occlusion", target=(4, 14, "PER"))
    shown = plain(explanation_text(e))
    assert "PER “old sailor”" in shown
    assert f"{100 * e.probabilities[e.classes.index(e.prediction)]:.1f} %" in shown
    page = e.to_html()
    assert 'class="answer' in page
    each = raison.explain(load("tags", "deberta_v2"), TEXTS[0], "occlusion", target="each")
    assert are_targets(each)
    written = raison.save(each, tmp_path / "each.html").read_text(encoding="utf-8")
    assert written.count('<article class="raison" id="explanation-') == len(each)
    masked = raison.explain(load("masks", "bert"), "A [MASK] plot!", "occlusion")
    assert f"“{masked.target}” at [MASK]" in plain(explanation_text(masked))
    with pytest.raises(DataError):
        Explanation.from_dict(e.to_dict() | {"place": {"kind": "entity"}})
    with pytest.raises(DataError):
        Explanation.from_dict(e.to_dict() | {"place": e.to_dict()["place"] | {"end": 999}})


@pytest.mark.parametrize("kind", ["tags", "masks"])
def test_folders_and_doctor(kind: str, tmp_path: Path) -> None:
    model = load(kind, "bert")
    model.model.save_pretrained(tmp_path)
    model.tokenizer.save_pretrained(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loaded = raison.load(str(tmp_path))
    text = texts_of(model)[0]
    target = (4, 7) if kind == "tags" else None
    assert raison.explain(loaded, text, "occlusion", target=target).scores == pytest.approx(
        raison.explain(model, text, "occlusion", target=target).scores,
        # Weights that are mapped from a file lie at other addresses: kernels may add in another order.
        abs=1e-7,
    )
    found = raison.doctor(model)
    assert found.passed, str(found)
    assert "target='each'" in str(found.facts["explains"])
    assert found.methods["rpi"]
    assert not found.methods["integrated_gradients"]


def test_a_comparison_of_every_entity() -> None:
    model = load("tags", "deberta_v2")
    table = raison.compare(model, TEXTS[:2], "occlusion", "sufficiency(removal='mask')", target="each", progress=False)
    each = raison.explain(model, list(TEXTS[:2]), "occlusion", target="each", progress=False)
    assert table.texts == sum(map(len, each))
    assert set(table.by_target) == {e.target for of_text in each for e in of_text}
