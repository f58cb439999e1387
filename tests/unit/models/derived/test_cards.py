"""Cards of what was trained: another method's card is named."""

from pathlib import Path

import pytest

import raison
from raison.core.errors import LoadError

PLACE = Path(raison.__file__).parent / "models" / "demo" / "sst2"


@pytest.mark.parametrize(("method", "other"), [("aml", "amortized_shap"), ("amortized_shap", "aml")])
def test_an_explainer_of_another_method_is_named(method: str, other: str) -> None:
    model = raison.load("demo/sst2")
    with pytest.raises(LoadError, match=rf"holds what was trained for {other}, not for {method}: use {other}\("):
        raison.explain(model, "a dull plot", f"{method}(checkpoint='{PLACE / other}')")
