"""The order in which processes take jobs."""

from raison.jobs.engine import Job, one_by_one


def job(key: str, cost: float, done: bool = False, reads_on: bool = False) -> Job:
    return Job(key, "", lambda _: None, lambda: done, cost, reads_on=reads_on)


def test_the_most_expensive_missing_jobs_come_first() -> None:
    jobs = [job("a", 1), job("b", 3), job("c", 5, done=True), job("d", 3), job("e", 4)]
    assert [one.key for one in one_by_one(jobs)] == ["e", "b", "d", "a"]


def test_jobs_that_read_on_keep_their_order() -> None:
    jobs = [job(key, cost, key == "b", reads_on=True) for key, cost in zip("abcd", (1, 4, 2, 3), strict=True)]
    assert [one.key for one in one_by_one(jobs)] == ["a", "c", "d"]
