"""The suite runs in several processes; each takes its share of the processor's cores."""

import os
from collections import Counter
from collections.abc import Iterator

import jaxtyping
import pytest
import torch

_WORKERS = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
if _WORKERS > 1:
    _THREADS = max(1, (os.cpu_count() or 1) // _WORKERS)
    torch.set_num_threads(_THREADS)
    # Processes that a test starts must round as it does itself: sums depend on the number of threads.
    os.environ["OMP_NUM_THREADS"] = str(_THREADS)

REPEATING = ("contracts", "integration")
"""Folders of tests that make the same calls over and over, on every family and in whole runs."""
CHECKED = ("bert", "llama")
"""The families on which these have shapes and types checked, too."""


ALL = bool(os.environ.get("RAISON_ALL_FAMILIES"))
"""Whether tests that are much alike all run."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of a test that is marked in_turn(3), every third run over its parameters: with few of each, all still occur."""
    if ALL:
        return
    seen: Counter[str] = Counter()
    left = set()
    for item in items:
        for mark in item.iter_markers("in_turn"):
            name = item.nodeid.partition("[")[0]
            if seen[name] % mark.args[0]:
                left.add(item)
            seen[name] += 1
    if left:
        config.hook.pytest_deselected(items=list(left))
        items[:] = [item for item in items if item not in left]


@pytest.fixture(autouse=True)
def _types_checked(request: pytest.FixtureRequest) -> Iterator[None]:
    """Leave out the checks of shapes and types, a third of the time, where other tests have made them."""
    parameters = request.node.callspec.params.values() if hasattr(request.node, "callspec") else ()
    off = request.path.parent.name in REPEATING and not any(family in CHECKED for family in map(str, parameters))
    jaxtyping.config.update("jaxtyping_disable", off)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
