"""Every benchmark can be imported with the package as it is. None is run: they take minutes."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
IMPORT = """
import importlib, sys
sys.path[:0] = [{benchmarks!r}, {root!r}]
import tests.conftest
failed = []
for name in {names!r}:
    try:
        importlib.import_module(name)
    except Exception as error:
        failed.append(f"{{name}}: {{error!r}}")
print("\\n".join(failed))
"""


def test_every_benchmark_can_be_imported() -> None:
    names = sorted(path.stem for path in (ROOT / "benchmarks").glob("*.py"))
    assert len(names) > 30
    code = IMPORT.format(benchmarks=str(ROOT / "benchmarks"), root=str(ROOT), names=names)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    assert not done.stdout.strip(), done.stdout
