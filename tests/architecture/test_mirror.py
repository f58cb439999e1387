"""tests/unit mirrors src/raison: the file that a test belongs to is found by its name."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
UNIT, SOURCE = ROOT / "tests/unit", ROOT / "src/raison"


def has_twin(test: Path) -> bool:
    """Whether test_NAME.py, or test_NAME_ASPECT.py, stands where src/raison has the file or folder NAME."""
    relative = test.relative_to(UNIT)
    words = relative.stem.removeprefix("test_").split("_")
    names = ["_".join(words[:count]) for count in range(1, len(words) + 1)]
    folder = SOURCE / relative.parent
    return any((folder / f"{name}.py").is_file() or (folder / name / "__init__.py").is_file() for name in names)


def test_a_unit_test_is_named_for_what_it_tests() -> None:
    """Name it for the file or folder of src/raison that it tests, and put it in the same place."""
    tests = sorted(UNIT.rglob("test_*.py"))
    assert len(tests) > 100
    assert [test.relative_to(UNIT).as_posix() for test in tests if not has_twin(test)] == []


def test_a_test_without_a_twin_is_found() -> None:
    assert has_twin(UNIT / "core/test_registry_names.py")
    assert not has_twin(UNIT / "core/test_nothing.py")
    assert not has_twin(UNIT / "test_registry.py")
