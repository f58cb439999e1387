"""What is said of a map's sampling error, from notes that may come from anywhere."""

from dataclasses import replace
from typing import Any

import pytest

from raison.web.component.trust_facts import trusted
from tests.explained import of_words


@pytest.mark.parametrize(
    ("method", "notes", "said"),
    [
        ("occlusion", {}, "none: the method does not sample"),
        ("lime", {}, "not measured by this method"),
        ("shapley_sampling", {"standard_error": [0.0, 0.25]}, "up to 0.25 (the largest standard error of a score)"),
        (
            "kernel_shap",
            {"intervals": [[-0.1, 0.1], [0.0, 0.5]]},
            "up to 0.25 to either side (half the widest 95 % interval of a score)",
        ),
        (
            "kernel_shap",
            {"intervals": [5, ["a", 1], [1]], "standard_error": ["x", None]},
            "not measured by this method",
        ),
        ("kernel_shap", {"intervals": "much", "standard_error": 3}, "not measured by this method"),
    ],
)
def test_the_sampling_error_is_what_the_method_noted(method: str, notes: dict[str, Any], said: str) -> None:
    told = trusted(replace(of_words("a film", [0.5, 0.1]), method=method, notes=notes), (), None)
    assert {"name": "Sampling error", "said": said} in told["facts"]  # type: ignore[operator]


@pytest.mark.parametrize(
    ("method", "config"),
    [
        ("aml2", {}),
        ("kernel_shap", {"samples": "many"}),
        ("kernel_shap", {"sample": 5}),
        ("ensemble", {"methods": [5]}),
    ],
)
def test_a_method_that_cannot_be_is_said_to_be_unknown(method: str, config: dict[str, Any]) -> None:
    told = trusted(replace(of_words("a film", [0.5, 0.1]), method=method, config=config), (), "lime")
    findings = told["findings"]
    assert findings[0] == {"name": "An audit of this model recommended", "said": "lime"}  # type: ignore[index]
    assert {"name": method, "said": "this version does not know it"} in findings  # type: ignore[operator]
