"""What a study of trust refuses: claims about what it does not measure."""

from pathlib import Path

import pytest

from raison.studies.claims import verdicts
from raison.studies.file import StudyError, read
from raison.studies.kinds.trust.results import read as read_trust
from raison.studies.kinds.trust.work import examine
from tests.integration.test_trust_studies import STUDY, place, run
from tests.trust_stand_in import Stand

__all__ = ["place"]

SWAPPED = """
[[claims]]
says = "words can be replaced"
measure = "rank_change"
attack = "substitution"
above = "saliency"
than = 0.1
"""


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('order = "cascading"\n', 'order = "independent"\n', "number 1: the study has no order independent"),
        ('blocks = "all"', "blocks = 60", "number 1: blocks is 60, and one has 3."),
        ('than = "attention_rollout"', 'than = "random"', "number 1: random is not randomised (no parameters)."),
        ('objectives = ["unconstrained", "constrained"]', 'objectives = ["unconstrained"]', "(constrained); it has"),
        (
            'above = "saliency"',
            'above = "random"',
            "number 2: random is not attacked by shifted embeddings (no gradient).",
        ),
        ("substitution = { swaps = 1, tries = 4 }\n", "", "number 3: the study has no attack substitution"),
    ],
)
def test_claims_about_what_is_not_measured_are_refused(place: Path, old: str, new: str, reason: str) -> None:
    text = STUDY.replace("MODEL", str(place / "tiny")) + SWAPPED
    assert old in text
    (place / "wrong.toml").write_text(text.replace(old, new, 1))
    with pytest.raises(StudyError) as caught:
        examine(read(place / "wrong.toml", Stand().works()))
    assert any(reason in line for line in caught.value.mistakes), caught.value.mistakes


def test_substituted_words_need_no_objective(place: Path, tmp_path: Path) -> None:
    (place / "swapped.toml").write_text(STUDY.replace("MODEL", str(place / "tiny")) + SWAPPED)
    works = Stand().works()
    folder = run(examine(read(place / "swapped.toml", works)), Stand(), tmp_path / "swapped")
    last = verdicts(read_trust(folder))[-1]
    assert (last.finding, last.row) == ("not judged", "saliency (substitution, constrained)")


def test_a_key_that_cannot_be_read_is_the_only_mistake_of_its_claim(place: Path) -> None:
    (place / "wrong.toml").write_text(STUDY.replace('blocks = "all"', 'blocks = "one"'))
    with pytest.raises(StudyError) as caught:
        read(place / "wrong.toml", Stand().works())
    (line,) = caught.value.mistakes
    assert line.startswith("[[claims]] number 1: blocks is 'one'")
