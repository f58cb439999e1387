"""Input at the edges: the right texts are counted, or one line says what is wrong before work is done."""

import codecs
import json
import os
import random
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from transformers import AutoModelForMaskedLM, AutoModelForTokenClassification, pipeline

import raison
from raison.core.errors import AnswerError, DataError, InputError, RaisonError, TextTooLongError, UnsupportedError
from raison.core.inputs.rationale import Span
from raison.core.model import LanguageModel
from raison.data import Row
from raison.data import load as load_data
from raison.data.dataset import BrokenLine
from raison.data.questions import stream_questions
from raison.data.streams import Reading
from raison.jobs import disk, workers
from raison.studies.kinds.audit.spec import AuditPlan
from raison.web.server.runs.run_contents import contents_of
from tests.patience import PATIENCE, slowness
from tests.tiny import LABELS, TAGS, TINY, build, build_at_places

TEXTS = ("the old sailor told a story", "a dull plot", "not good", "they love the sea")
HALF = "a \ud83d film was good"


@pytest.fixture(scope="module")
def model() -> LanguageModel:
    loaded = raison.load(*TINY["bert"]())
    assert isinstance(loaded, LanguageModel)
    return loaded


def test_a_regressor_of_several_numbers_is_not_taken_for_a_classifier() -> None:
    module, tokenizer = build("bert", ("valence", "arousal", "dominance"), "regression")
    with pytest.raises(UnsupportedError, match="a regressor with 3 outputs .valence, arousal, dominance"):
        raison.load(module, tokenizer)
    with pytest.raises(AnswerError, match="not probabilities"):
        raison.load(pipeline("text-classification", model=module, tokenizer=tokenizer, top_k=None))


def test_classes_of_the_same_name_are_refused() -> None:
    module, tokenizer = build("bert", ("a", "b", "c"))
    module.config.id2label = {0: "x", 1: "x", 2: "y"}
    with pytest.raises(UnsupportedError, match=r"several have the same name \(x, x, y\)"):
        raison.load(module, tokenizer)


@pytest.mark.parametrize(
    ("texts", "settings", "says"),
    [
        ((*TEXTS, " "), {}, "text 5 of 5 is empty or blank"),
        ((*TEXTS, ("a pair", "\t")), {}, "text 5 of 5 is empty or blank in its second string"),
        (TEXTS, {"target": [*LABELS, "good"]}, "unknown label 'good'"),
        (TEXTS, {"target": [*LABELS, 9]}, "class 9 does not exist"),
        (TEXTS, {"target": [*LABELS, True]}, "target True is not a class"),
        (TEXTS, {"target": [*LABELS, float("nan")]}, "target nan is not a class"),
        (TEXTS, {"target": list(LABELS[:2])}, "2 targets for 4 texts"),
        (TEXTS, {"method": None}, "no method is given"),
    ],
)
def test_a_mistake_in_a_list_is_found_before_a_pass(
    model: LanguageModel, texts: Any, settings: dict[str, Any], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object) -> Any:
        raise AssertionError("a pass before the mistake was found")

    monkeypatch.setattr(model, "masked_logits", never)
    with pytest.raises(RaisonError, match=says):
        raison.explain(model, texts, **{"method": "occlusion", **settings})


def test_a_tuple_is_one_pair_for_all_texts(model: LanguageModel) -> None:
    assert {e.against for e in raison.explain(model, TEXTS, "occlusion", target=LABELS[:2])} == {LABELS[1]}


@pytest.mark.parametrize("place", [0, 40, 69])
def test_a_text_that_is_too_long_has_its_number_in_the_list_and_is_found_first(
    model: LanguageModel, place: int
) -> None:
    texts = ["a dull plot"] * 70
    texts[place] = "sea " * 800
    with pytest.raises(TextTooLongError, match=f"text {place + 1} of 70 has"):
        raison.explain(model, texts, "saliency", progress=False)


def test_a_function_names_a_text_by_its_number_in_the_list() -> None:
    asked = raison.load(lambda texts: [[0.5, 0.5] for _ in texts], classes=["no", "yes"])
    with pytest.raises(InputError, match=r"text 40 of 41 is \('a', 'b'\)"):
        raison.explain(asked, ["a dull plot"] * 39 + [("a", "b"), "good"], "occlusion", progress=False)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_wide_characters_are_not_read_as_bytes(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("text,label\na good film,1\nbad,0\n", encoding=encoding)
    with pytest.raises(DataError, match=f"rows.csv is not utf-8: its bytes are {encoding[:6]}"):
        load_data(path)
    assert load_data(path, encoding=encoding).texts == ("a good film", "bad")
    path.write_bytes(codecs.BOM_UTF8 + b"text,label\na \0 film,1\nbad,0\n")
    assert load_data(path).texts == ("a \0 film", "bad")


@pytest.mark.parametrize("name", ["U16", "utf_16", "UTF-16"])
def test_every_name_of_an_encoding_is_one(tmp_path: Path, name: str) -> None:
    (tmp_path / "rows.csv").write_text("text,label\na good film,1\nbad,0\n", encoding="utf-16")
    assert load_data(tmp_path / "rows.csv", encoding=name).texts == ("a good film", "bad")


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_half_a_character_stops_no_file(model: LanguageModel, tmp_path: Path, form: Any) -> None:
    rows = [{"text": "good"}, {"text": HALF, "id": "\udfff"}, {"text": "bad"}]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    for _ in range(2):
        written = raison.explain_file(
            model, tmp_path / "rows.jsonl", out=tmp_path / "out", method="occlusion", format=form, progress=False
        )
        told = [row["text"] for row in written.rows()]
        assert told == ["good", HALF if form == "jsonl" else HALF.replace("\ud83d", "\ufffd"), "bad"]
    for _ in range(2):
        compared = raison.compare(model, ["good", HALF], "occlusion", "gini", out=tmp_path / "run", progress=False)
        assert len(compared["occlusion"]["gini"].values) == 2


@pytest.mark.parametrize(
    "marks", [[[(0, 1)], [(2, 4)]], [[[(0, 1)]], [[(2, 4), (0, 1)]]], [[[0, 1]], []], [[Span(0, 1)], [[Span(2, 4)]]]]
)
def test_rationales_are_spans_as_in_files(model: LanguageModel, marks: Any) -> None:
    texts = ["a good film", "not good"]
    explained = raison.explain(model, texts, "occlusion")
    judged = raison.evaluate(model, explained, "auprc", rationales=marks)["auprc"].values
    compared = raison.compare(model, texts, "occlusion", "auprc", rationales=marks, progress=False)
    assert compared["occlusion"]["auprc"].values == pytest.approx(judged, nan_ok=True)


@pytest.mark.parametrize(
    ("marks", "says"),
    [
        ([[[0, 1]], None], r"rationales\[1\]: no annotator"),
        ([((Span(0, 1),),), ()], r"rationales\[1\]: no annotator"),
        ([[[0, 1]]], "2 texts but 1 entries of rationales"),
        ([5, []], r"rationales\[0\]: the rationale 5 is not a list"),
        ([[[0, 99]], []], r"rationales\[0\]: the span \[0, 99\] is empty or outside"),
    ],
)
def test_other_rationales_are_one_line(model: LanguageModel, marks: Any, says: str) -> None:
    texts = ["a good film", "not good"]
    with pytest.raises(InputError, match=says):
        raison.evaluate(model, raison.explain(model, texts, "occlusion"), "auprc", rationales=marks)
    with pytest.raises(InputError, match=says):
        raison.compare(model, texts, "occlusion", "auprc", rationales=marks, progress=False)


@pytest.mark.parametrize("language", ["de", "DE", "de-AT", "de_CH", "de-Latn-AT"])
def test_a_language_of_a_region_has_the_rules_of_the_language(model: LanguageModel, language: str) -> None:
    e = raison.explain(model, "Das kam am 3. Oktober. Gut.", "occlusion", unit="sentence", language=language)
    assert [unit.text for unit in e.units] == ["Das kam am 3. Oktober.", "Gut."]


def test_so_has_the_language_of_one_string_of_a_pair() -> None:
    pairs = raison.load(lambda texts: [[0.5, 0.5] for _ in texts], classes=["no", "yes"], pairs=True)
    e = raison.explain(
        pairs, ("Das kam am 3. Oktober. Gut.", "x"), "occlusion", unit="sentence", units="first", language="de-AT"
    )
    assert [unit.text for unit in e.units] == ["Das kam am 3. Oktober.", "Gut."]


@pytest.mark.parametrize(("name", "value"), [("target", "x"), ("against", "x"), ("of", "x")])
@pytest.mark.parametrize("problem", [None, "multi_label_classification"])
def test_an_edited_explanation_of_no_class_is_refused(name: str, value: str, problem: str | None) -> None:
    explained = raison.explain(raison.load(*build("bert", LABELS, problem)), "a good film", "occlusion").to_dict()
    with pytest.raises(DataError, match=f"not an explanation: {name} is 'x'"):
        raison.Explanation.from_dict({**explained, name: value})


def test_an_edited_config_is_one_line(model: LanguageModel) -> None:
    explained = raison.explain(model, "a good film", "occlusion").to_dict() | {"config": {"nothing": 1}}
    with pytest.raises(DataError, match="the explanation's config is not that of occlusion"):
        raison.evaluate(model, raison.Explanation.from_dict(explained), "max_sensitivity")


@pytest.mark.parametrize(
    ("labels", "labelled"),
    [(LABELS[:1] * 2, True), (["", LABELS[0]], True), (["pos", "neg"], False), (["", ""], False)],
)
def test_explained_files_are_labelled_where_a_label_is_a_class(
    model: LanguageModel, tmp_path: Path, labels: list[str], labelled: bool
) -> None:
    rows = [{"text": text, "label": label or None} for text, label in zip(TEXTS, labels, strict=False)]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    raison.explain_file(
        model, tmp_path / "rows.jsonl", out=tmp_path / "out", method="occlusion", format="jsonl", progress=False
    )
    assert contents_of("out", tmp_path / "out").facts.labelled is labelled


@pytest.mark.parametrize("kind", [AutoModelForTokenClassification, AutoModelForMaskedLM])
def test_models_of_places_are_audited(kind: type, tmp_path: Path) -> None:
    labels = TAGS if kind is AutoModelForTokenClassification else LABELS
    loaded = raison.load(*build_at_places("bert", kind, labels))
    texts = ["the old [MASK] told a story", "a dull plot [MASK]", "a good [MASK] in the sea"]
    plan = AuditPlan(randomised=2, changed=2, attacked=2)
    audited = raison.audit(loaded, texts, ["occlusion", "saliency"], out=tmp_path / "audit", plan=plan, progress=False)
    done, wanted = audited.progress
    assert done == wanted > 0
    assert {scores.metric.partition("(")[2] for row in audited.table.rows for scores in row.metrics} == {
        "removal='mask')"
    }
    assert "a position in it" in str(audited.trust.header.attacks.left_out["substitution"])  # type: ignore[union-attr]
    assert raison.compare(loaded, texts, ["occlusion"], progress=False)["occlusion"].metrics


def test_the_first_use_leaves_the_random_state_as_it_was() -> None:
    script = """
import random, sys, numpy as np
random.seed(1), np.random.seed(1)
before = random.getstate(), repr(np.random.get_state())
import raison
model = raison.load(lambda texts: [[0.5, 0.5] for _ in texts], classes=["a", "b"])
raison.explain(model, "a good film", "kernel_shap").to_html()
raison.compare(model, ["a b", "c d"], ["occlusion"], progress=False)
assert "rich" in sys.modules
assert before == (random.getstate(), repr(np.random.get_state()))
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_another_thread_s_draws_are_not_taken_back() -> None:
    assert raison.explain
    random.seed(0)
    alone = [random.random() for _ in range(50_000)]
    random.seed(0)
    done = threading.Event()

    def used() -> None:
        while not done.is_set():
            assert raison.explain

    other = threading.Thread(target=used)
    other.start()
    beside = [random.random() for _ in range(50_000)]
    done.set()
    other.join()
    assert beside == alone


def test_a_file_that_a_person_names_keeps_its_permissions_and_its_link(model: LanguageModel, tmp_path: Path) -> None:
    e = raison.explain(model, TEXTS[0], "occlusion", progress=False)
    private, target, link = tmp_path / "private.json", tmp_path / "target.json", tmp_path / "link.json"
    private.write_text("old")
    private.chmod(0o600)
    target.write_text("old")
    link.symlink_to(target)
    for path in (private, link):
        raison.save(e, path)
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    assert link.is_symlink()
    assert private.read_bytes() == target.read_bytes() != b"old"
    assert {path.name for path in tmp_path.iterdir()} == {"private.json", "target.json", "link.json"}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_written_to_and_not_replaced(model: LanguageModel, tmp_path: Path) -> None:
    pipe, heard = tmp_path / "pipe.json", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: heard.append(pipe.read_bytes()), daemon=True)
    reader.start()
    e = raison.explain(model, TEXTS[0], "occlusion", progress=False)
    raison.save(e, pipe)
    reader.join(PATIENCE)
    assert raison.Explanation.from_json(heard[0].decode()) == e
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="needs /dev/fd")
def test_a_pipe_without_a_path_is_written_to() -> None:
    read, write = os.pipe()
    disk.write_named(Path(f"/dev/fd/{write}"), "a page")
    os.close(write)
    with open(read, "rb") as file:
        assert file.read() == b"a page"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('{"question": "Who?", "sources": {"a": "x", "b": "y", "a": "z"}, "answer": "ok."}', "the key 'a' twice"),
        ('{"question": ["Who?"], "sources": ["x"], "answer": "ok."}', "'Who?' is not a chat message"),
        ('{"messages": ["x"], "sources": ["x"], "answer": "ok."}', "'x' is not a chat message"),
        ('{"question": "Who?", "sources": ["x"], "more": ' + "[" * 100_000 + "]" * 100_000 + "}", "nest too deeply"),
    ],
)
def test_a_line_of_questions_that_is_wrong_is_named_and_the_others_are_read(
    tmp_path: Path, line: str, why: str
) -> None:
    path = tmp_path / "asked.jsonl"
    path.write_text('{"question": "Who?", "sources": ["x", "y"], "answer": "ok."}\n' + line + "\n")
    first, second = (item.entry for item in stream_questions([str(path)], Reading()))
    assert isinstance(first, Row)
    assert isinstance(second, BrokenLine)
    assert why in second.reason


@pytest.mark.parametrize("more", ['"x": ' + "[" * 100_000 + "]" * 100_000, '"text": "again"'])
def test_a_line_of_texts_that_is_wrong_stops_no_file(model: LanguageModel, tmp_path: Path, more: str) -> None:
    path = tmp_path / "texts.jsonl"
    path.write_text('{"text": "a good film"}\n{"text": "bad", ' + more + "}\n")
    written = raison.explain_file(model, path, tmp_path / "out", "occlusion", format="jsonl", progress=False)
    assert (written.done, len(list(written.rejected))) == (2, 1)


def test_columns_that_are_named_like_the_classes_are_read_by_name() -> None:
    def frame(texts: list[str]) -> pd.DataFrame:
        shares = [0.9 if "good" in text else 0.2 for text in texts]
        return pd.DataFrame({"yes": shares, "no": [1 - share for share in shares]})

    e = raison.explain(raison.load(frame, classes=["no", "yes"]), "a good film", "occlusion", progress=False)
    assert e.prediction == "yes"
    assert e.probabilities == pytest.approx((0.1, 0.9))
    assert e.scores == pytest.approx((0.0, 0.7, 0.0))
    # Other names tell no order.
    assert raison.load(frame, classes=["a", "b"]).classes == ("a", "b")
    with pytest.raises(AnswerError, match="the columns yes, no, and the classes are yes, maybe"):
        raison.load(frame, classes=["yes", "maybe"])


def test_classes_without_an_order_are_refused() -> None:
    with pytest.raises(InputError, match="classes is a set"):
        raison.load(lambda texts: [[0.5, 0.5]] * len(texts), classes={"no", "yes"})


@pytest.mark.parametrize("target", [1, 3, np.int64(2)])
def test_a_number_that_is_the_name_of_another_class_is_ambiguous(target: int) -> None:
    stars = raison.load(lambda texts: [[0.5, 0.2, 0.3]] * len(texts), classes=["1", "2", "3"])
    with pytest.raises(InputError, match=f"target {target} is a label's name here"):
        raison.explain(stars, "a film", "occlusion", target=target)
    assert raison.explain(stars, "a film", "occlusion", target=str(target), progress=False).target == str(target)


def test_places_of_labels_that_are_numbers_are_places_inside() -> None:
    stars = raison.load(lambda texts: [[0.5, 0.2, 0.3]] * len(texts), classes=["1", "2", "3"])
    settings = {"methods": ["occlusion", "random"], "metrics": ["comprehensiveness"], "progress": False}
    assert raison.compare(stars, ["a film", "a dull plot"], target=[0, 1], **settings).texts == 2


def test_numpy_s_numbers_are_numbers(model: LanguageModel) -> None:
    assert raison.explain(model, TEXTS[0], "occlusion", target=np.int64(1), progress=False).target == LABELS[1]


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ((0, 3, ("PER", "PER")), "both tags are PER"),
        ((0, 5000, "PER"), "is not a span of"),
        ((3, 3), "is not a span of"),
    ],
)
def test_targets_of_a_tagger_that_cannot_be_are_refused(target: Any, says: str) -> None:
    tagger = raison.load(*build_at_places("bert", AutoModelForTokenClassification, TAGS))
    with pytest.raises(InputError, match=says):
        raison.explain(tagger, TEXTS[0], "occlusion", target=target)


def test_a_chat_for_a_classifier_is_called_one(model: LanguageModel) -> None:
    with pytest.raises(InputError, match="this is a chat, which generative language models read"):
        raison.explain(model, [{"role": "user", "content": "a good film"}])


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_an_interrupt_of_one_process_reaches_those_that_it_started(monkeypatch: pytest.MonkeyPatch, lost: int) -> None:
    """Also if some are lost, as one that comes while an object is deleted."""
    monkeypatch.setattr(workers, "PROMPT", 0.1)
    monkeypatch.setattr(workers, "AGAIN", 1.0)
    # A shell's background job, which this may be, hands down that interrupts are ignored.
    code = (
        "import signal, sys, time\n"
        f"lost = [None] * {lost}\n"
        "signal.signal(signal.SIGINT, lambda *_: lost.pop() if lost else sys.exit(130))\n"
        "print(flush=True)\nwhile True: time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        process.stdout.readline()
        began = time.monotonic()
        workers.interrupt([process])
    assert process.returncode == 130
    assert time.monotonic() - began < 20 * slowness()
