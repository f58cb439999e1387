"""The oldest versions that are tried are those that pyproject.toml admits."""

import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parents[2]


def lower_bounds() -> dict[str, Version]:
    """Of every dependency, those of extras included."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    listed = sum(project["optional-dependencies"].values(), list(project["dependencies"]))
    asked = [one for one in map(Requirement, listed) if one.name != "raison"]
    return {one.name: Version(bound.version) for one in asked for bound in one.specifier if bound.operator == ">="}


def test_the_oldest_versions_are_the_lower_bounds() -> None:
    lines = (ROOT / "tests/oldest.txt").read_text().splitlines()
    pinned = [Requirement(line) for line in lines if not line.startswith("#")]
    versions = {one.name: Version(str(one.specifier).removeprefix("==")) for one in pinned}
    assert versions == lower_bounds()
