"""An audit end to end: what it writes, that it goes on, what it refuses, and that its lights follow the numbers."""

import json
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from rich.console import Group
from typer.testing import CliRunner

import raison
from raison.cli import app
from raison.combining import advice
from raison.core.errors import DataError, InputError, UnknownNameError, UnsupportedError
from raison.explaining.settings import Settings
from raison.jobs.engine import Sharing
from raison.methods.occlusion import Occlusion
from raison.models.adapters.classifier import Classifier
from raison.report.pages.writing import shown
from raison.report.style.terminal_text import plain
from raison.studies.kinds.audit import results, work
from raison.studies.kinds.audit.results import Audit
from raison.studies.kinds.audit.results import read as read_audit
from raison.studies.kinds.audit.sections import file_of, sections
from raison.studies.kinds.audit.spec import AuditPlan
from raison.studies.kinds.audit.work import estimate_audit
from raison.studies.reports import write
from raison.trust.attacks import EmbeddingAttack
from raison.trust.results import ATTACKS, SIMILARITIES, substituted
from raison.trust.substitution import Substitution
from tests.forks import forked as forked
from tests.interruptions import timeless
from tests.tiny import build

TEXTS = [
    "a quiet film and a loud end",
    "the film is not good",
    "a dull and quiet pleasure",
    "it is a good film about the sea",
]
METHODS = ["saliency", "occlusion", "attention_average"]
PLAN = AuditPlan(
    randomised=2,
    changed=2,
    attacked=2,
    attack=EmbeddingAttack(epsilon=1.0, relative=True, steps=3, optimiser="sign", draws=3),
    substitution=Substitution(swaps=1, tries=2),
)


def model() -> Classifier:
    loaded = raison.load(*build("bert"))
    assert isinstance(loaded, Classifier)
    return loaded


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("audit") / "first"
    raison.audit(model(), TEXTS, METHODS, out=place, plan=PLAN, data="four texts", progress=False)
    return place


@pytest.fixture(scope="module")
def audited(folder: Path) -> Audit:
    return read_audit(folder)


def test_every_method_gets_four_answers_with_their_numbers(audited: Audit) -> None:
    assert sorted(one.method for one in audited.methods) == sorted(METHODS)
    for one in audited.methods:
        assert [found.question for found in one.evidence] == ["faithful", "parameters", "changes", "attacks"]
        for found in one.evidence:
            # Four texts are too few to judge by; the numbers are there all the same.
            assert found.light == "grey"
            assert found.value is None or found.says.endswith("Too few texts to judge: at least 8 are needed.")
            assert found.value is None or found.value.count >= 1
    assert audited["occlusion"]["attacks"].value is not None
    assert audited.trust.header.attacks is not None
    reasons = audited.trust.header.attacks.left_out["embedding"]
    assert dict(audited.left_out) == {"occlusion, attacked by shifted embeddings": reasons["occlusion"]}


def test_a_question_or_a_method_that_is_not_there_is_named(audited: Audit) -> None:
    method = audited.methods[0].method
    with pytest.raises(UnknownNameError, match="Did you mean 'faithful'"):
        audited[method]["faithfull"]  # type: ignore[index]
    with pytest.raises(UnknownNameError, match="audited method"):
        audited["nothing"]


def test_the_light_of_a_method_follows_from_its_answers(audited: Audit) -> None:
    for one in audited.methods:
        lights = {found.question: found.light for found in one.evidence}
        first, second = {lights["faithful"], lights["parameters"]}, {lights["changes"], lights["attacks"]}
        expected = "red" if "red" in first else "amber" if first != {"green"} or "red" in second else "green"
        assert one.light == expected
    if audited.recommended is None:
        assert all(one.light == "red" or not one["faithful"].shown for one in audited.methods)
    else:
        assert audited[audited.recommended]["faithful"].shown
        best = {one.light for one in audited.methods if one["faithful"].shown} - {"red"}
        assert audited[audited.recommended].light == ("green" if "green" in best else "amber")
        assert ("None passes" in audited.reason) == ("green" not in best)


def test_an_audit_that_is_finished_does_nothing_more_and_one_that_was_cut_goes_on(folder: Path, tmp_path: Path) -> None:
    import shutil

    again = tmp_path / "again"
    shutil.copytree(folder, again)
    before = {path.name: path.read_bytes() for path in (again / "trust").iterdir()}
    for name in (SIMILARITIES, ATTACKS):
        lines = before[name].decode().splitlines(keepends=True)
        (again / "trust" / name).write_text("".join(lines[: len(lines) // 2]) + lines[-1][:9])
    gone = raison.audit(model(), TEXTS, METHODS, out=again, plan=PLAN, data="four texts", progress=False)
    whole = read_audit(folder)
    assert gone.trust.missing == 0
    assert set(gone.trust.similarities) == set(whole.trust.similarities)
    for key, record in whole.trust.similarities.items():
        assert gone.trust.similarities[key].spearman == pytest.approx(record.spearman, abs=1e-6, nan_ok=True)
    finished = {path.name: path.read_bytes() for path in (again / "trust").iterdir()}
    raison.audit(model(), TEXTS, METHODS, out=again, plan=PLAN, data="four texts", progress=False)
    assert {path.name: path.read_bytes() for path in (again / "trust").iterdir()} == finished


@pytest.mark.usefixtures("forked")
def test_other_processes_load_the_model_as_they_are_told(folder: Path, tmp_path: Path) -> None:
    heard = list[int]()
    sharing = Sharing(workers=2)
    raison.audit(
        model(), TEXTS, METHODS, out=tmp_path, plan=PLAN, data="four texts", progress=heard.append, sharing=sharing,
        load=model,
    )  # fmt: skip
    assert heard
    for name in ("faithfulness/records", "trust/similarities", "trust/attacks"):
        assert all_records(tmp_path / name) == all_records(folder / name)


def all_records(path: Path) -> list[str]:
    """The lines of a file or its shards, without their seconds, in any order."""
    lines = [line for part in path.parent.glob(f"{path.name}*.jsonl") for line in part.read_text().splitlines()]
    assert lines
    return sorted(json.dumps(timeless(json.loads(line)), sort_keys=True) for line in lines)


def test_the_report_says_what_the_records_say(folder: Path, audited: Audit, tmp_path: Path) -> None:
    page = write(folder, tmp_path / "report", draw=True)
    text = page.read_text(encoding="utf-8")
    for one in audited.methods:
        own = (tmp_path / "report" / file_of(one.method)).read_text(encoding="utf-8")
        assert one.method in own
        assert "Text 1" in own
        assert f'href="{file_of(one.method)}"' in text
    changed = [one.method for one in audited.methods if substituted(folder, audited.trust, one.method) is not None]
    assert changed, "words could be exchanged"
    for one in audited.methods:
        own = (tmp_path / "report" / file_of(one.method)).read_text(encoding="utf-8")
        assert ("How word substitutions change it" in own) == (one.method in changed)
    assert "://" not in text.replace("http://www.w3.org", "")
    assert text.count("<svg") >= 4
    told = json.loads(json.dumps(audited.to_dict(), allow_nan=False))
    assert told["recommended"] is None
    assert told["reason"] == "4 texts can show nothing of any method: audit at least 8, better 50."
    assert told["reason"] in unescape(text)
    assert plain(Group(*shown(sections(audited)))).count("\n") >= len(METHODS) + 2
    assert (tmp_path / "report" / "tables.md").read_text(encoding="utf-8").startswith("# Audit of")


def test_the_model_is_as_it_was(tmp_path: Path) -> None:
    loaded = model()
    before = {name: value.clone() for name, value in loaded.core.state_dict().items()}
    raison.audit(loaded, TEXTS[:2], ["saliency"], out=tmp_path / "out", plan=PLAN, progress=False)
    assert all((value == before[name]).all() for name, value in loaded.core.state_dict().items())
    assert all(parameter.grad is None for parameter in loaded.core.parameters())


class Idle(Occlusion):
    """A method of the caller's own."""


def test_methods_may_be_instances_and_classes(tmp_path: Path) -> None:
    """They are those of the names: an audit of these goes on in the folder, and has nothing left to do."""

    def methods_of(methods: list[Any]) -> list[str]:
        found = raison.audit(model(), TEXTS[:2], methods, out=tmp_path, plan=PLAN, data="two texts", progress=False)
        return [one.method for one in found.methods]

    made = methods_of([raison.methods.KernelShap(samples=20), raison.methods.Saliency])
    written = {path: path.read_bytes() for path in tmp_path.rglob("*.jsonl")}
    assert methods_of(["kernel_shap(samples=20)", "saliency"]) == made
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.jsonl")} == written != {}


def test_a_repeated_text_is_no_new_evidence(tmp_path: Path) -> None:
    """Copies of a text would make an interval of any width."""
    asked = (["occlusion", "saliency"],)
    again = [text for text in TEXTS for _ in range(10)]
    repeated = raison.audit(model(), again, *asked, out=tmp_path / "again", plan=PLAN, progress=False)
    # In its folder: what is audited is the same, and nothing is left to do.
    once = raison.audit(model(), TEXTS, *asked, out=tmp_path / "again", plan=PLAN, progress=False)
    assert repeated.header.texts == len(TEXTS)
    told = [
        [(e.question, e.light, e.says) for one in audit.methods for e in one.evidence] for audit in (once, repeated)
    ]
    assert told[0] == told[1]
    assert ("36 more texts", "a repeat of others") in repeated.left_out
    fewer = raison.audit(model(), [*TEXTS, TEXTS[0]], *asked, out=tmp_path / "again", plan=PLAN, progress=False)
    assert ("1 more text", "a repeat of others") in fewer.left_out
    assert not once.header.repeats
    with pytest.raises(InputError, match="at least 2 different texts"):
        raison.audit(model(), TEXTS[:1] * 40, *asked, out=tmp_path / "one")
    lists = Settings(target=[[None, "negative"]] * len(TEXTS))
    with pytest.raises(InputError, match="an audit explains predictions"):
        raison.audit(model(), TEXTS, *asked, out=tmp_path / "lists", settings=lists)


def test_what_cannot_be_audited_is_one_clear_line(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="at least 2 different texts"):
        raison.audit(model(), TEXTS[:1], out=tmp_path / "a")
    with pytest.raises(InputError, match="cannot be 1: give a whole number of at least 2"):
        replace(PLAN, attacked=1)
    with pytest.raises(UnsupportedError, match="step_logits"):
        raison.audit(model(), TEXTS, ["sp_pi"], out=tmp_path / "b")
    with pytest.raises(InputError, match="Idle is not a method of the catalogue"):
        raison.audit(model(), TEXTS, [Idle()], out=tmp_path / "b")
    with pytest.raises(DataError, match="holds another audit"):
        raison.audit(model(), TEXTS[:3], METHODS, out=folder, plan=PLAN, data="four texts")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    with pytest.raises(DataError, match="holds other files"):
        raison.audit(model(), TEXTS, METHODS, out=tmp_path / "full", plan=PLAN)
    assert (tmp_path / "full" / "mine.txt").read_text() == "mine"


def recommending(method: str | None, texts: int, unfit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Audits of four texts recommend a method, record the number of texts, and may be unfit for auto."""

    def told(folder: Path) -> Audit:
        audited = read_audit(folder)
        return replace(audited, recommended=method, header=replace(audited.header, texts=texts))

    monkeypatch.setattr(work, "read", told)
    monkeypatch.setattr(results, "unfit_for_auto", lambda chosen, table: unfit)


@pytest.mark.parametrize(
    ("method", "texts", "unfit", "known"),
    [
        ("occlusion", 4, "", "occlusion"),
        ("occlusion", 4, "it rests on few texts", None),
        (None, 4, "", None),
        ("lime", 5, "", None),
    ],
)
def test_what_a_finished_audit_recommends_is_known_to_auto(
    method: str | None, texts: int, unfit: str, known: str | None, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recommending(method, texts, unfit, monkeypatch)
    raison.audit(model(), TEXTS, METHODS, out=folder, plan=PLAN, data="four texts", progress=False)
    assert advice.advised(model()) == known
    e = raison.explain(model(), TEXTS[0])
    assert e.method == (known or "kernel_shap")


def test_a_cache_that_cannot_be_written_does_not_lose_an_audit(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recommending("occlusion", 4, "", monkeypatch)
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(advice, "folder", lambda: tmp_path / "file" / "audits")
    with pytest.warns(UserWarning, match="method='auto' will not use this audit"):
        audited = raison.audit(model(), TEXTS, METHODS, out=folder, plan=PLAN, data="four texts", progress=False)
    assert audited.recommended == "occlusion"
    assert repr(audited).endswith(f"on {audited.header.texts} texts: occlusion recommended>")


def test_the_estimate_names_every_part() -> None:
    told = estimate_audit(model(), TEXTS, ["saliency", "occlusion"], plan=PLAN)
    assert set(told.parts) == {
        "faithfulness", "harmless changes", "randomised blocks", "attacks", "exchanged words"
    }  # fmt: skip
    assert all(seconds > 0 for seconds in told.parts.values())
    assert told.text().startswith("about")


def test_command_line(tmp_path: Path) -> None:
    core, tokenizer = build("bert")
    core.save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    (tmp_path / "texts.tsv").write_text("sentence\tlabel\n" + "".join(f"{text}\t0\n" for text in TEXTS))
    arguments = ["audit", "--model", str(tmp_path / "model"), "--data", str(tmp_path / "texts.tsv"), "--json"]
    arguments += ["--methods", "saliency,occlusion", "--limit", "2", "--out", str(tmp_path / "out"), "--no-plots"]
    estimated = CliRunner().invoke(app, [*arguments, "--estimate"])
    assert estimated.exit_code == 0, estimated.output
    assert json.loads(estimated.stdout)["seconds"] > 0
    refused = CliRunner().invoke(app, [*arguments, "--estimate", "--units", "second"])
    assert refused.exit_code
    assert "units='second' needs texts of several strings" in str(refused.exception)
    assert not (tmp_path / "out").exists()


def explained(folder: Path) -> list[dict[str, Any]]:
    """The explanations that an audit has kept."""
    lines = [json.loads(line) for path in folder.rglob("explanations.jsonl") for line in path.read_text().splitlines()]
    assert lines
    return [line["explanation"] for line in lines]


def test_parts_that_the_caller_names_are_audited(tmp_path: Path) -> None:
    texts = TEXTS[:2]
    units = [[(0, 7), (8, len(text))] for text in texts]
    parts = raison.audit(
        model(), texts, ["occlusion", "saliency"], out=tmp_path / "parts", units=units, plan=PLAN, progress=False
    )
    assert parts.progress[0] == parts.progress[1] > 0
    pairs = [(text, "so it is") for text in texts]
    side = raison.audit(
        model(), pairs, ["occlusion", "saliency"], out=tmp_path / "side", units="first", plan=PLAN, progress=False
    )
    for folder, counts in (("parts", {2}), ("side", {len(text.split()) for text in texts})):
        lines = explained(tmp_path / folder)
        assert {len(line["units"]) for line in lines} == counts
        assert {line["unit"] for line in lines} == {"part"}
    assert side.progress[0] == side.progress[1]


def test_sentences_of_another_language_are_audited(tmp_path: Path) -> None:
    texts = ["Das kam am 3. Oktober. Es war gut.", "Ein guter Film. Er ist nicht lang."]
    raison.audit(
        model(), texts, ["occlusion"], out=tmp_path, settings=Settings(unit="sentence"), language="de", plan=PLAN
    )
    assert {len(line["units"]) for line in explained(tmp_path)} == {2}


def test_methods_that_differ_in_a_sign_have_their_own_pages() -> None:
    assert file_of("occlusion") == "method-occlusion.html"
    assert len({file_of("rpi(layers=-2)"), file_of("rpi(layers=2)")}) == 2


@pytest.mark.parametrize("settings", [{"changed": 2.5}, {"randomised": "3"}, {"attacked": 1}])
def test_numbers_of_texts_are_whole(settings: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(settings))):
        AuditPlan(**settings)


def test_half_a_surrogate_pair_is_audited_like_any_text(tmp_path: Path) -> None:
    model = raison.load(lambda texts: [[0.5, 0.5] for _ in texts], classes=["no", "yes"])
    found = raison.audit(model, ["a \ud800 film", "a film"], ["occlusion"], out=tmp_path, progress=False)
    assert found.table.texts == 2
