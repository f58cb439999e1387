"""The component is one text in every use, which loads and runs nothing else."""

import re
from importlib.resources import files

import pytest

from raison.web.component.sources import MODULES, imports, module, style

ASSETS = files("raison.web.component").joinpath("assets")


def test_every_file_is_a_part_and_imports_from_earlier_ones_only() -> None:
    assert sorted(MODULES) == sorted(file.name for file in ASSETS.iterdir() if file.name.endswith(".js"))
    for place, name in enumerate(MODULES):
        assert set(imports(name)) <= set(MODULES[:place])


def test_the_whole_has_no_import_and_one_name_for_one_thing() -> None:
    text = module()
    assert not re.search(r"^\s*import\b|\bimport\(", text, re.M)
    names = re.findall(r"^(?:async )?(?:function|const|let|class) (\w+)", text, re.M)
    assert len(names) == len(set(names))
    assert re.findall(r"^export .*", text, re.M) == ["export default { render, renderRows };"]


@pytest.mark.parametrize("name", MODULES)
def test_texts_never_become_markup_and_nothing_is_loaded(name: str) -> None:
    text = ASSETS.joinpath(name).read_text("utf-8")
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|srcdoc", text)
    assert not re.search(r"https?:|fetch\(|XMLHttpRequest|WebSocket", text)
    assert text.count("\n") <= 400


def test_the_style_sheet_loads_nothing() -> None:
    assert "@import" not in style()
    assert "url(" not in style()
