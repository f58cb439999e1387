"""The lights of an audit, and which methods it may recommend."""

import gzip
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from raison.report.tables.records import Advice
from raison.studies.kinds.audit.evidence import AuditFinding
from raison.studies.kinds.audit.results import Audit, read
from raison.studies.kinds.audit.sections import answer, sections

COMMITTED = Path(__file__).parents[5] / "studies" / "audit_sst2" / "audit"


def test_what_was_not_shown_is_said_in_other_words() -> None:
    assert answer(AuditFinding("faithful", "amber", None, "")) == "partly"
    assert answer(AuditFinding("faithful", "amber", None, "", shown=False)) == "not shown"
    assert answer(AuditFinding("changes", "grey", None, "")) == "not tested"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the committed audit, whose records can be cut."""
    shutil.copytree(COMMITTED, tmp_path / "audit")
    for packed in (tmp_path / "audit").rglob("*.gz"):
        packed.with_suffix("").write_bytes(gzip.decompress(packed.read_bytes()))
        packed.unlink()
    return tmp_path / "audit"


@pytest.fixture(scope="module")
def whole() -> Audit:
    """The committed audit."""
    return read(COMMITTED)


def keep(records: Path, kept: Callable[[dict[str, Any]], bool]) -> None:
    lines = [line for line in records.read_text().splitlines(keepends=True) if kept(json.loads(line))]
    records.write_text("".join(lines))


def test_a_method_whose_strongest_attack_is_missing_gets_no_light(folder: Path, whole: Audit) -> None:
    assert whole["integrated_gradients"]["attacks"].light == "red"
    keep(folder / "trust" / "attacks.jsonl", lambda line: line["attack"] != "embedding")
    found = read(folder)["integrated_gradients"]["attacks"]
    assert (found.light, found.value) == ("grey", None)
    assert found.says.startswith("Not finished: ")


def test_an_audit_that_lacks_harmless_changes_is_unfinished(folder: Path, whole: Audit) -> None:
    assert whole.progress[0] == whole.progress[1]
    assert not list(whole.unfinished())
    keep(folder / "changes" / "records.jsonl", lambda line: line.get("text") != 1)
    cut = read(folder)
    assert cut.progress == (whole.progress[1] - 1, whole.progress[1])
    assert cut.changed == (whole.changed[1] - 1, whole.changed[1])
    assert "Unfinished" in next(cut.unfinished())
    assert (cut.to_dict()["records"], cut.to_dict()["wanted"]) == cut.progress


def test_an_unfinished_audit_counts_the_texts_that_it_has(folder: Path) -> None:
    keep(folder / "faithfulness" / "records.jsonl", lambda line: line.get("text", 0) < 9)
    cut = read(folder)
    assert cut.to_dict()["texts"] == 9
    (advice,), *_, about = (section.parts for section in sections(cut).sections)
    assert isinstance(advice, Advice)
    assert "tried on 9 texts" in advice.counts
    assert f"9 of {cut.header.texts} texts so far" in str(about)


def test_texts_of_one_unit_are_no_evidence_of_attacks_anywhere(folder: Path) -> None:
    """The sentence, the change of the probability that it states, and the figure are of the same texts."""
    records = folder / "faithfulness" / "records.jsonl"
    lines = [json.loads(line) for line in records.read_text().splitlines()]
    for line in lines:
        line.pop("crc32", None)
        if line.get("text") in (0, 1, 2):
            line["units"] = 1
    records.write_text("".join(json.dumps(line) + "\n" for line in lines))
    audit = read(folder)
    finding = audit["integrated_gradients"]["attacks"]
    left = [r for key, r in audit.trust.attacks.items() if key.method == "integrated_gradients" and key.text > 2]
    worst = {
        variant: [one for one in left if (one.attack, one.objective) == (variant.attack, variant.objective)]
        for variant in audit.trust.variants
    }
    strongest = max(worst.values(), key=lambda some: sum(one.rank_change for one in some) / max(1, len(some)))
    assert finding.value is not None
    assert finding.value.count == len(strongest)
    moved = sum(abs(one.probability_change) for one in strongest) / len(strongest)
    stated = re.search(r"changes the probability by ([0-9.]+)\.", finding.says)
    assert stated is not None
    assert float(stated[1]) == pytest.approx(moved, abs=0.5 * 10.0 ** -len(stated[1].partition(".")[2]))
    assert {key.text for key in audit.ordered.attacks}.isdisjoint({0, 1, 2})
    assert audit.single == {0, 1, 2}
