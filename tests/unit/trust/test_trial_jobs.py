"""The jobs of a trial: each works on its own texts, and none keeps a list of everybody else's."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from raison.explaining.settings import Settings
from raison.trust.operations import TrustOperations, TrustRequest
from raison.trust.results import SIMILARITIES, head_of, store_of
from raison.trust.trial import AttacksAsked, RandomisationAsked, TrustTrial, entry_of
from raison.trust.trial_jobs import CHUNK, FEW, TrialJobs
from tests.toys import Linear
from tests.trust_stand_in import Randomised, Stand, Swaps

TEXTS = [f"film number {number}" for number in range(40)]


@dataclass
class Heard:
    """What the operations were asked: the texts, and how many keys they were given as done."""

    only: list[range | None] = field(default_factory=list)
    done: list[int] = field(default_factory=list)

    def hear(self, request: TrustRequest, plan: Any, done: Collection[Any]) -> Iterator[list[Any]]:
        self.only.append(request.only)
        self.done.append(len(done))
        return iter(())

    def works(self) -> TrustOperations:
        return replace(Stand().works(), similarities=self.hear, substituted=self.hear)


def trial_jobs(folder: Path, works: TrustOperations, texts: int) -> TrialJobs:
    randomisation = RandomisationAsked(texts, Randomised(("cascading",)))
    trial = TrustTrial(("saliency", "occlusion"), Settings(), randomisation, AttacksAsked(texts, (), Swaps()))
    given = TEXTS[:texts]
    entry = head_of({"name": "one", "model": "m", "data": "d", "source": "d"} | entry_of(trial, works, Linear(), given))
    return TrialJobs(trial, works, Linear, given, entry, {}, folder)


def test_a_job_is_given_its_own_texts_and_what_is_known(tmp_path: Path) -> None:
    heard = Heard()
    for job in trial_jobs(tmp_path, heard.works(), 40).jobs():
        job.run(lambda count: None)
    assert heard.only[:3] == [range(0, CHUNK), range(CHUNK, 2 * CHUNK), range(2 * CHUNK, 40)]
    assert heard.only[3:] == [range(start, start + FEW) for start in range(0, 40, FEW)]
    assert set(heard.done) == {0}


def test_jobs_of_the_same_texts_have_the_same_keys_however_much_is_done(tmp_path: Path) -> None:
    stand = Stand()
    jobs = trial_jobs(tmp_path, stand.works(), 20).jobs()
    assert [job.key for job in jobs[:2]] == [
        f"randomisation one ('saliency', 'cascading', 1, 0, {first})" for first in (0, CHUNK)
    ]
    jobs[1].run(lambda count: None)
    written = store_of(tmp_path, "one", SIMILARITIES).read().records
    assert {record["text"] for record in written} == {16, 17, 18, 19}
    again = trial_jobs(tmp_path, stand.works(), 20).jobs()
    assert [job.key for job in again] == [job.key for job in jobs]
    assert [job.is_done() for job in again[:2]] == [False, True]
