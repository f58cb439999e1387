"""The lights of an audit, and which methods it may recommend."""

import gzip
import json
import shutil
from pathlib import Path

from raison.studies.kinds.audit.evidence import AuditFinding
from raison.studies.kinds.audit.results import read
from raison.studies.kinds.audit.sections import answer

COMMITTED = Path(__file__).parents[5] / "studies" / "audit_sst2" / "audit"


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
