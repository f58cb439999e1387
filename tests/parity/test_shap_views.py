"""shap's own plots of an explanation: sums, names and texts are those of the explanation."""

import warnings

import matplotlib
import pytest

import raison
from raison.core.results.explanation import Explanation
from tests.toys import Linear

with warnings.catch_warnings():
    # shap's own use of matplotlib.
    warnings.simplefilter("ignore")
    import shap


@pytest.fixture(scope="module")
def complete() -> Explanation:
    return raison.explain(Linear(), "good film not bad", "shapley_exact", of="logit", target=1)


def test_the_base_value_and_the_values_add_up(complete: Explanation) -> None:
    found = complete.to_shap()
    assert isinstance(found, shap.Explanation)
    assert found.base_values == complete.value_empty
    assert found.base_values + found.values.sum() == pytest.approx(complete.value_full)
    assert "".join(found.data) == complete.text
    assert found.feature_names == ["good", "film", "not", "bad"]


def test_the_text_plot_says_the_values(complete: Explanation) -> None:
    markup = shap.plots.text(complete.to_shap(), display=False)
    for word, score in zip(("good", "film", "not", "bad"), complete.scores, strict=True):
        assert word in markup
        assert f"{abs(score):.3g}" in markup
    assert f"{complete.value_empty:.3}" in markup or "base value" in markup


@pytest.mark.parametrize("plot", ["bar", "waterfall"])
def test_bar_plots_draw_each_unit(complete: Explanation, plot: str) -> None:
    matplotlib.use("agg")
    from matplotlib import pyplot

    pyplot.close("all")
    axes = vars(shap.plots)[plot](complete.to_shap(), show=False)
    drawn = " ".join(text.get_text() for text in pyplot.gcf().findobj(matplotlib.text.Text))
    for word in ("good", "film", "not", "bad"):
        assert word in drawn
    for score in complete.scores:
        assert f"{abs(score):.2f}"[:3] in drawn
    assert axes is not None
    pyplot.close("all")
