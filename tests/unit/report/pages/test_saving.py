"""Explanations as files: each kind reads back or is well-formed, nothing else is written."""

import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

import raison
from raison.core.errors import DataError, InputError
from raison.core.results.scores import Comparison
from raison.report.explanations.drawing import svg
from raison.report.pages.latex import latex
from tests.unit.core.results.test_generation import explanation as written
from tests.unit.core.results.test_scores import ROW, TABLE
from tests.unit.report.explanations.test_html import REVIEW, TEXTS, explain

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("ending", [".html", ".json", ".svg", ".tex", ".png", ".HTML"])
def test_every_ending_writes_one_file(tmp_path: Path, ending: str) -> None:
    for e in (explain(REVIEW), written()):
        path = tmp_path / f"e{ending}"
        assert e.save(path) == path
        assert [found.name for found in tmp_path.iterdir()] == [path.name]
        assert path.stat().st_size > 100


def test_json_reads_back(tmp_path: Path) -> None:
    e = explain(REVIEW)
    assert raison.Explanation.from_json(e.save(tmp_path / "e.json").read_text(encoding="utf-8")) == e


def test_several_read_back(tmp_path: Path) -> None:
    several = [explain(REVIEW), explain(TEXTS["pair"])]
    text = raison.save(several, tmp_path / "several.json").read_text(encoding="utf-8")
    assert raison.Explanation.list_from_json(text) == several
    with pytest.raises(DataError, match="this is a list: use Explanation.list_from_json"):
        raison.Explanation.from_json(text)
    with pytest.raises(DataError, match="this is a single object: use Explanation.from_json"):
        raison.Explanation.list_from_json(several[0].to_json())
    with pytest.raises(DataError, match=r"^not a list of Explanation: \[1\] is 2; it must be an object."):
        raison.Explanation.list_from_json(f"[{several[0].to_json()}, 2]")
    with pytest.raises(DataError, match=r"^\[1\] in the list: not an explanation: the fields "):
        raison.Explanation.list_from_json(f"[{several[0].to_json()}, {{}}]")


def test_a_comparison_is_saved_as_it_is_exported(tmp_path: Path) -> None:
    exports = {"html": TABLE.to_html(), "csv": TABLE.to_csv(), "md": TABLE.to_markdown(), "tex": TABLE.to_latex()}
    for ending, content in exports.items():
        with raison.save(TABLE, tmp_path / f"c.{ending}").open(encoding="utf-8", newline="") as file:
            assert file.read() == content
    read = Comparison.from_json(raison.save(TABLE, tmp_path / "c.json").read_text(encoding="utf-8"))
    assert read.to_html() == TABLE.to_html()
    with pytest.raises(InputError, match=r"a comparison as 'c.png': give a name that ends in one of .html, .json"):
        raison.save(TABLE, tmp_path / "c.png")


def test_what_is_no_result_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="scores of one method have no page"):
        raison.save(ROW, tmp_path / "scores.html")
    for wrong in (5, None, "text", [TABLE]):
        with pytest.raises(InputError, match=r"what is saved is an explanation, citations or a comparison, or a list"):
            raison.save(wrong, tmp_path / "wrong.html")
    with pytest.raises(InputError, match=r"what is saved comes first, then the file's name"):
        raison.save("wrong.html", [ROW])
    assert not list(tmp_path.iterdir())


def test_an_unknown_ending_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"'e.pdf': give a name that ends in one of .html, .json, .png, .svg, .tex"):
        explain(REVIEW).save(tmp_path / "e.pdf")
    assert not list(tmp_path.iterdir())


def test_without_matplotlib_only_the_image_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("raison.report.figures.scores.find_spec", lambda name: None)
    for ending in (".html", ".json", ".svg", ".tex"):
        explain(REVIEW).save(tmp_path / f"e{ending}")
    with pytest.raises(DataError, match=r"pip install 'raison\[report\]'"):
        explain(REVIEW).save(tmp_path / "e.png")
    with pytest.raises(DataError, match="matplotlib"):
        explain(REVIEW).plot()


@pytest.mark.parametrize("kind", [kind for kind in TEXTS if kind != "empty"])
def test_a_drawing_is_well_formed_and_holds_the_text(kind: str) -> None:
    root = ElementTree.fromstring(svg(explain(TEXTS[kind])))
    assert root.tag == f"{SVG}svg"
    shown = "".join(text.text or "" for text in root.iter(f"{SVG}text") if text.get("textLength"))
    text = TEXTS[kind]
    wanted = text if isinstance(text, str) else "".join(text)
    assert "".join(shown.split()) == "".join(wanted.split())
    for element in root.iter():
        for name in ("x", "width"):
            value = element.get(name, "0")
            assert value == "100%" or 0 <= float(value) <= 760


def test_right_to_left_text_runs_to_the_left() -> None:
    root = ElementTree.fromstring(svg(explain(TEXTS["right to left"])))
    places = [float(text.get("x", "0")) for text in root.iter(f"{SVG}text") if text.get("textLength")]
    assert places[0] == max(places)
    root = ElementTree.fromstring(svg(explain(REVIEW)))
    places = [float(text.get("x", "0")) for text in root.iter(f"{SVG}text") if text.get("textLength")]
    assert places[0] == min(places)


def test_latex_escapes_what_it_shows() -> None:
    found = latex(explain(r"100 % of \this & $that$ {x}_y"))
    assert r"100" in found
    assert r"\%" in found
    for raw in (r"\this", " & ", "$that$"):
        assert raw not in found
    assert found.count("{") - found.count("\\{") == found.count("}") - found.count("\\}")
    assert "\\colorbox[HTML]" in found


def test_a_plot_shows_every_unit_in_the_order_of_the_text() -> None:
    figure = explain("good $film$ dull", (0.1, 0.2, -0.3)).plot()
    [axes] = figure.axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["good", "$film$", "dull"]
    assert [bar.get_width() for bar in axes.patches] == [0.1, 0.2, -0.3]
    assert axes.yaxis_inverted()
    assert explain("good \ud800 dull").plot().axes[0].get_yticklabels()[1].get_text() == "\ufffd"
    long = explain(" ".join(f"w{n}" for n in range(50)), tuple(0.01 * n for n in range(50))).plot()
    assert len(long.axes[0].patches) == 30
    assert "without 20 weaker words" in long.axes[0].get_title(loc="left")


def test_the_first_page_needs_no_extra() -> None:
    """What README's first page does imports neither matplotlib nor shap, nor IPython."""
    script = (
        "import sys, raison\n"
        "from tests.unit.report.explanations.test_html import REVIEW, explain\n"
        "e = explain(REVIEW); e.show(); e.to_frame(); e.to_html()\n"
        "from raison.report.explanations.drawing import svg; svg(e)\n"
        "assert not {'matplotlib', 'shap', 'IPython', 'torch'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, stdout=subprocess.DEVNULL)
