"""Every benchmark can be imported with the package as it is. None is run: they take minutes."""

import importlib
import sys
import warnings
from functools import partial
from pathlib import Path

from tests.apart import started

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def test_every_benchmark_can_be_imported(tmp_path: Path) -> None:
    names = sorted(path.stem for path in BENCHMARKS.glob("*.py"))
    assert len(names) > 30
    said = tmp_path / "said.txt"
    # Apart, for a benchmark may change what it finds.
    process = started(partial(imported, names), said)
    process.join()
    assert process.exitcode == 0, said.read_text()


def imported(names: list[str]) -> None:
    """Import each of them, as the script that it is finds its modules. Raises ImportError with all that fail."""
    sys.path.insert(0, str(BENCHMARKS))
    # An error in the tests, not in a process of its own.
    warnings.simplefilter("ignore")
    failed = []
    for name in names:
        try:
            importlib.import_module(name)
        except Exception as error:  # noqa: BLE001 - whatever stops a benchmark is told
            failed.append(f"{name}: {error!r}")
    if failed:
        raise ImportError("\n".join(failed))
