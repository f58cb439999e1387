"""The suite runs in several processes, each with one thread.

The process that starts them reads this file, too, before they start: neither torch nor the package is imported here.
"""

import asyncio
import gc
import os
import sys
from collections import defaultdict
from collections.abc import Iterator
from itertools import compress
from uuid import uuid4
from zlib import crc32

import jaxtyping
import pytest
from hypothesis import HealthCheck, settings

# jaxtyping finds it by its name when it imports the first module of the package.
import tests.checked  # noqa: F401

# Read by torch when it is imported. Processes that a test starts must round as it does itself, and sums depend on the
# number of threads.
assert "torch" not in sys.modules
os.environ["OMP_NUM_THREADS"] = "1"

# Without bytecode on disk, every process that a test starts compiles the whole package again: 3 s of processor time.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# The same examples every time, on a slow machine, too.
settings.register_profile(
    "raison", derandomize=True, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("raison")

REPEATING = ("contracts", "integration", "reference")
"""Folders of tests that make the same calls over and over, on every family and in whole runs."""
CHECKED = ("bert", "llama")
"""The families on which these have shapes and types checked, too."""


MANY = 12
"""Combinations of parameters from which on a part of them runs if a test has no mark."""
PART = 4
"""One in so many of them runs, and those by which every value of a parameter occurs."""
OF_ONE = 2
"""Of a parameter with MANY values, one in so many runs; which ones depends on the test."""
ALL = bool(os.environ.get("RAISON_ALL_FAMILIES"))
"""Whether tests that are much alike all run."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what other tests show, too, except with RAISON_ALL_FAMILIES=1 or an expression that chooses tests (-k).

    Tests that are marked thorough do not run. Of a test that is marked in_turn(n), one in n of its combinations of
    parameters runs, as in a Latin square: with two parameters of which one has at least n values, every value of the
    other still occurs, and so on. A test without a mark runs for every second value of a parameter that has MANY, such
    as a contract's method, so that a method meets half of these tests. If it has MANY combinations of parameters that
    do not decide each other, it then runs for a quarter of them and for those by which every value that is left occurs.
    """
    if ALL or config.option.keyword:
        return
    tests: dict[str, list[pytest.Function]] = defaultdict(list)
    left = {item for item in items if item.get_closest_marker("thorough")}
    for item in items:
        if isinstance(item, pytest.Function) and hasattr(item, "callspec") and item not in left:
            tests[item.nodeid.partition("[")[0]].append(item)
    for name, combinations in tests.items():
        # Not its place among those that are collected: a test alone runs for what it runs for in the whole suite.
        left.update(_left_out(combinations, crc32(name.encode())))
    if left:
        config.hook.pytest_deselected(items=[item for item in items if item in left])
        items[:] = [item for item in items if item not in left]


def _left_out(combinations: list[pytest.Function], number: int) -> Iterator[pytest.Function]:
    """Those of a test's combinations of parameters that do not run; `number` decides which of many values do."""
    mark = combinations[0].get_closest_marker("in_turn")
    if mark is None and len(combinations) < MANY:
        return
    columns = _free_columns(combinations)
    rows = list(zip(*columns, strict=True))
    if mark is not None:
        yield from (item for item, row in zip(combinations, rows, strict=True) if sum(row) % mark.args[0])
        return
    if len({*columns[0]}) >= MANY:
        kept = [(row[0] + number) % OF_ONE == 0 for row in rows]
        yield from (item for item, stays in zip(combinations, kept, strict=True) if not stays)
        combinations = [*compress(combinations, kept)]
        rows = [*compress(rows, kept)]
    if len(columns) > 1:
        met = [{row[place] for row in rows if sum(row) % PART == 0} for place in range(len(columns))]
        for item, row in zip(combinations, rows, strict=True):
            if sum(row) % PART and all(value in seen for value, seen in zip(row, met, strict=True)):
                yield item
            for value, seen in zip(row, met, strict=True):
                seen.add(value)


def pytest_collection_finish() -> None:
    """Thousands of collected tests are not searched for garbage again and again, as after every lack of memory."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Before the fixtures, also those of a whole module.

    What the tests before have left is not searched each time that memory is said to have run out. Checks of shapes and
    types, half of the time of a study of tiny models, are left out where other tests have made them.
    """
    if "out_of_memory" in item.name:
        gc.freeze()
    parameters = map(str, item.callspec.params.values()) if hasattr(item, "callspec") else ()
    off = not {*REPEATING}.isdisjoint(item.path.parts) and {*CHECKED}.isdisjoint(parameters)
    jaxtyping.config.update("jaxtyping_disable", off)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    """Whoever asks between tests is told that types are checked."""
    jaxtyping.config.update("jaxtyping_disable", False)


def _free_columns(combinations: list[pytest.Function]) -> list[list[int]]:
    """For each parameter that no other decides, the number of its value in each combination."""
    columns: dict[str, list[int]] = defaultdict(list)
    numbers: dict[str, dict[str, int]] = defaultdict(dict)
    for item in combinations:
        for name, value in item.callspec.params.items():
            columns[name].append(numbers[name].setdefault(repr(value), len(numbers[name])))
    free: list[list[int]] = []
    for name in sorted(columns, key=lambda name: -len(numbers[name])):
        column = columns[name]
        if all(len(set(zip(one, column, strict=True))) > len(set(one)) for one in free):
            free.append(column)
    return free


@pytest.fixture(autouse=True, scope="session")
def _advice_away(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What the audits of fixtures recommend does not go to the user's cache."""
    place = tmp_path_factory.getbasetemp() / "audits"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("raison.combining.advice.folder", lambda: place)
        yield


@pytest.fixture(autouse=True)
def _advice_apart(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """What a test's own audit recommends is known to that test alone."""
    place = tmp_path_factory.getbasetemp() / f"audits-{uuid4().hex}"
    monkeypatch.setattr("raison.combining.advice.folder", lambda: place)


@pytest.fixture(autouse=True)
def _loop_of_a_browser_away(request: pytest.FixtureRequest) -> Iterator[None]:
    """Playwright's event loop counts as running for as long as a browser is open: other tests do not see it."""
    if request.node.get_closest_marker("browser"):
        yield
        return
    running = asyncio._get_running_loop()
    asyncio._set_running_loop(None)
    yield
    asyncio._set_running_loop(running)
