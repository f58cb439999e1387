"""The lights of an audit, and which methods it may recommend."""

import gzip
import json
import shutil
from pathlib import Path

import pytest

from raison.runs.judging import Border
from raison.studies.kinds.audit.results import SHARE, AuditFinding, light_of, read
from raison.studies.kinds.audit.sections import answer

COMMITTED = Path(__file__).parents[5] / "studies" / "audit_sst2" / "audit"
GREEN, RED = Border("below", 0.25), Border("above", 0.5)


@pytest.mark.parametrize(
    ("values", "light"),
    [
        ([1.0] * 8, "red"),
        ([1.0] * 7 + [0.9], "red"),
        ([1.0, 0.9, 0.8, 0.9, 1.0, 0.8, 0.9, 0.9], "red"),
        ([0.6] * 8, "amber"),
        ([0.0] * 12, "green"),
        ([0.0] * 8, "amber"),
        ([1.0] * 7, "grey"),
    ],
)
def test_a_method_that_always_breaks_breaks(values: list[float], light: str) -> None:
    assert light_of(values, GREEN, RED, SHARE) == light


def test_what_was_not_shown_is_said_in_other_words() -> None:
    assert answer(AuditFinding("faithful", "amber", None, "")) == "partly"
    assert answer(AuditFinding("faithful", "amber", None, "", shown=False)) == "not shown"
    assert answer(AuditFinding("changes", "grey", None, "")) == "not tested"


def test_a_method_whose_strongest_attack_is_missing_gets_no_light(tmp_path: Path) -> None:
    shutil.copytree(COMMITTED, tmp_path / "audit")
    for packed in (tmp_path / "audit").rglob("*.gz"):
        packed.with_suffix("").write_bytes(gzip.decompress(packed.read_bytes()))
        packed.unlink()
    assert read(tmp_path / "audit")["integrated_gradients"]["attacks"].light == "red"
    attacks = tmp_path / "audit" / "trust" / "attacks.jsonl"
    kept = [line for line in attacks.read_text().splitlines(keepends=True) if json.loads(line)["attack"] != "embedding"]
    attacks.write_text("".join(kept))
    found = read(tmp_path / "audit")["integrated_gradients"]["attacks"]
    assert (found.light, found.value) == ("grey", None)
    assert found.says.startswith("Not finished: ")
