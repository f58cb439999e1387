"""raison explains the predictions of language models and says how far the explanations can be trusted.

    import raison
    model = raison.load("demo/sst2")
    raison.explain(model, "a modest pleasure", method="integrated_gradients")

Everything is imported when it is first used: `import raison` itself needs neither torch nor transformers.
"""

import importlib
import sys
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING

from raison._version import __version__
from raison.core import explanation as _explanation
from raison.core import generation as _generation
from raison.core import results as _results
from raison.core.errors import RaisonError
from raison.core.explanation import Explanation
from raison.core.generation import GenerationExplanation
from raison.core.results import Comparison, Scores
from raison.core.unit import Unit

if TYPE_CHECKING:
    from raison import data, methods, metrics
    from raison.compare import compare
    from raison.evaluate import evaluate
    from raison.explain import explain
    from raison.models.loading.load import load
    from raison.studies.kinds.audit.work import audit
    from raison.text.prompts import Prompt

__all__ = [
    "Comparison",
    "Explanation",
    "GenerationExplanation",
    "Prompt",
    "RaisonError",
    "Scores",
    "Unit",
    "__version__",
    "audit",
    "compare",
    "data",
    "evaluate",
    "explain",
    "load",
    "methods",
    "metrics",
]

_FUNCTIONS = {
    "load": "raison.models.loading.load",
    "explain": "raison.explain",
    "evaluate": "raison.evaluate",
    "compare": "raison.compare",
    "audit": "raison.studies.kinds.audit.work",
    "Prompt": "raison.text.prompts",
}
_PACKAGES = ("methods", "metrics", "data")


class _FrontDoor(ModuleType):
    """This package, in which `explain`, `evaluate`, `compare` and `audit` are functions.

    Importing the file explain.py makes Python set the attribute `raison.explain` to that module; the function of the
    same name takes its place.
    """

    def __setattr__(self, name: str, value: object) -> None:
        if name in _FUNCTIONS and isinstance(value, ModuleType):
            value = vars(value)[name]
        super().__setattr__(name, value)


def __getattr__(name: str) -> object:
    if name in _FUNCTIONS:
        return vars(importlib.import_module(_FUNCTIONS[name]))[name]
    if name in _PACKAGES:
        return importlib.import_module(f"raison.{name}")
    raise AttributeError(f"module 'raison' has no attribute {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return __all__


def _renderer(module: str, function: str) -> Callable[[object], str]:
    def render(result: object) -> str:
        return vars(importlib.import_module(f"raison.report.{module}"))[function](result)

    return render


sys.modules[__name__].__class__ = _FrontDoor
_explanation.RENDERERS.update(html=_renderer("html", "page"), html_fragment=_renderer("html", "fragment"))
_generation.RENDERERS.update(
    text=_renderer("generation_terminal", "generation_plain"),
    html=_renderer("generation_page", "page"),
    html_fragment=_renderer("generation_page", "fragment"),
)
_results.RENDERERS.update(
    text=_renderer("terminal", "results_plain"),
    html=_renderer("html_tables", "results_page"),
    html_fragment=_renderer("html_tables", "results_fragment"),
    markdown=_renderer("tables", "markdown"),
    latex=_renderer("tables", "latex"),
    csv=_renderer("tables", "csv_text"),
)
