"""A class whose settings would silently be lost is refused, with the line to write."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest

from raison.core.errors import InputError
from raison.core.method import Cost, Method
from raison.core.registry import Catalogue
from raison.core.settings.declared import refuse_lost_settings
from raison.methods import CATALOGUE
from raison.methods.occlusion import Occlusion
from raison.methods.random import Random

WITHOUT_DECORATOR = "write @dataclass(frozen=True) above class Reaching: without it, its settings are lost (reach)."
WITHOUT_TYPE = (
    "write a type for reach in class Reaching, as in `reach: int = 2`: without one, it is not a setting "
    "(annotate a constant as ClassVar)."
)


class NoDecorator(Occlusion):
    reach: int = 2


NoDecorator.__name__ = "Reaching"


@dataclass(frozen=True)
class Below(NoDecorator):
    """The decorator of a subclass does not collect the settings of the class that lacks it."""


@dataclass(frozen=True)
class NoType(Occlusion):
    reach = 2


NoType.__name__ = "Reaching"


class NoTypeOfABaseSetting(Random):
    draws = 7


@pytest.mark.parametrize("cls", [NoDecorator, Below])
@pytest.mark.parametrize("settings", [{}, {"reach": 3}])
def test_a_missing_decorator(cls: type[Method], settings: dict[str, Any]) -> None:
    with pytest.raises(InputError) as caught:
        cls(**settings)
    assert str(caught.value) == WITHOUT_DECORATOR
    with pytest.raises(InputError) as caught:
        CATALOGUE.create(cls)
    assert str(caught.value) == WITHOUT_DECORATOR


def test_a_missing_type() -> None:
    with pytest.raises(InputError) as caught:
        NoType()
    assert str(caught.value) == WITHOUT_TYPE
    with pytest.raises(InputError, match="type for draws in class NoTypeOfABaseSetting, as in `draws: int = 7`"):
        NoTypeOfABaseSetting()


def test_a_subclass_without_settings_of_its_own_needs_no_decorator() -> None:
    class Plain(Random):
        reference = "another"
        most_units = 5
        kept: ClassVar[int] = 3
        quoted: "ClassVar[int]" = 3
        LIMIT = 3
        _seen = 4

        class Inner:
            pass

        @property
        def signed(self) -> bool:
            return False

        def cost(self, units: int) -> Cost:
            return Cost()

    assert Plain(draws=2).draws == 2
    refuse_lost_settings(Plain)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package of methods that lies outside raison. Its name is its own, because the files of a package are cached."""
    folder = tmp_path / f"package_of_{tmp_path.name}"
    folder.mkdir()
    (folder / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    yield folder
    for name in [name for name in sys.modules if name.startswith(folder.name)]:
        del sys.modules[name]


@pytest.mark.parametrize(
    ("above", "field", "line"),
    [
        ("", "reach: int = 2", WITHOUT_DECORATOR),
        ("@dataclass(frozen=True)", "reach = 2", WITHOUT_TYPE),
        (
            "@dataclass",
            "reach: int = 2",
            "write @dataclass(frozen=True) above class Reaching: settings do not change, but its @dataclass lets them.",
        ),
    ],
)
def test_the_catalogue_refuses_such_a_file(package: Path, above: str, field: str, line: str) -> None:
    (package / "reaching.py").write_text(
        "from dataclasses import dataclass\nfrom raison.methods.random import Random\n"
        f"{above}\nclass Reaching(Random):\n    {field}\n"
    )
    catalogue: Catalogue[Method] = Catalogue(package.name, "method", Method)
    for spec in ("reaching", "reaching(reach=3)"):
        with pytest.raises(InputError) as caught:
            catalogue.create(spec)
        assert str(caught.value) == line


def test_another_error_of_a_file_is_told_with_the_file(package: Path) -> None:
    (package / "broken.py").write_text("len(3)\n")
    catalogue: Catalogue[Method] = Catalogue(package.name, "method", Method)
    with pytest.raises(InputError, match=r"broken.py cannot be imported \(TypeError: .* has no len\(\)\)") as caught:
        catalogue.get("broken")
    assert isinstance(caught.value.__cause__, TypeError)
