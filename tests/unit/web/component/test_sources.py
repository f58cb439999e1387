"""The component is one text in every use, which loads and runs nothing else."""

import re
from importlib.resources import files

import pytest

from raison.report.style.modules import imports
from raison.web.component.sources import module, read, style

ASSETS = files("raison.web.component").joinpath("assets")
SHARED = files("raison.report").joinpath("assets")
OWN = sorted(file.name for file in ASSETS.iterdir() if file.name.endswith(".js"))
PAGES = sorted(file.name for file in SHARED.iterdir() if file.name.endswith(".js"))


def _needed(name: str) -> set[str]:
    return {name}.union(*map(_needed, imports(read(name))))


def test_every_file_is_a_part_and_has_a_name_of_its_own() -> None:
    needed = _needed("component.js")
    assert set(OWN) <= needed
    assert {"units.js", "output.js", "cited.js"} <= needed & set(PAGES)
    assert set(OWN).isdisjoint(PAGES)


@pytest.mark.parametrize("name", [*OWN, *PAGES])
def test_an_import_leads_to_a_file(name: str) -> None:
    folder = ASSETS if name in OWN else SHARED
    for path in re.findall(r"from \"(.*?)\"", read(name)):
        assert folder.joinpath(path).is_file()
    assert len(imports(read(name))) == read(name).count(' from "')


def test_the_whole_has_no_import_and_one_name_for_one_thing() -> None:
    text = module()
    assert not re.search(r"^\s*import\b|\bimport\(", text, re.M)
    names = re.findall(r"^(?:async )?(?:function|const|let|class) (\w+)", text, re.M)
    assert len(names) == len(set(names))
    assert re.findall(r"^export .*", text, re.M) == ["export default { render, renderRows };"]


@pytest.mark.parametrize("name", [*OWN, *PAGES])
def test_texts_never_become_markup_and_nothing_is_loaded(name: str) -> None:
    text = read(name)
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|srcdoc", text)
    assert not re.search(r"https?:|fetch\(|XMLHttpRequest|WebSocket", text)
    assert text.count("\n") <= 400


def test_the_style_sheet_loads_nothing() -> None:
    assert "@import" not in style()
    assert "url(" not in style()
