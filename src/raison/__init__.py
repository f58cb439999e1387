"""raison explains the predictions of language models and says how far the explanations can be trusted.

    import raison
    model = raison.load("demo/sst2")
    raison.explain(model, "a modest pleasure")

Everything is imported when it is first used: `import raison` itself needs neither torch nor transformers.
"""

import importlib
import random
import sys
from types import ModuleType
from typing import TYPE_CHECKING

from raison._version import __version__
from raison.core.errors import RaisonError
from raison.core.inputs.chat import Chat
from raison.core.inputs.parts import PartedText
from raison.core.inputs.unit import Unit
from raison.core.results.citations import Citations
from raison.core.results.explanation import Explanation
from raison.core.results.generation import GenerationExplanation
from raison.core.results.scores import Comparison, Scores

if TYPE_CHECKING:
    from raison import data, methods, metrics
    from raison.explaining.cite import cite
    from raison.explaining.diagnosis import doctor
    from raison.explaining.explain import explain
    from raison.explaining.files.entry_points import cite_file, explain_file
    from raison.judging.compare import compare
    from raison.judging.evaluate import evaluate
    from raison.models.loading.load import load
    from raison.models.served.request_settings import Served
    from raison.report.pages.saving import save
    from raison.report.pages.tracking import log
    from raison.studies.kinds.audit.work import audit
    from raison.text.prompts import Prompt
    from raison.text.template import template
    from raison.web.component.display import show
    from raison.web.component.widget import Widget as Widget

__all__ = [
    "Chat",
    "Citations",
    "Comparison",
    "Explanation",
    "GenerationExplanation",
    "PartedText",
    "Prompt",
    "RaisonError",
    "Scores",
    "Served",
    "Unit",
    "__version__",
    "audit",
    "cite",
    "cite_file",
    "compare",
    "data",
    "doctor",
    "evaluate",
    "explain",
    "explain_file",
    "load",
    "log",
    "methods",
    "metrics",
    "save",
    "show",
    "template",
]

_FUNCTIONS = {
    "load": "raison.models.loading.load",
    "explain": "raison.explaining.explain",
    "explain_file": "raison.explaining.files.entry_points",
    "cite": "raison.explaining.cite",
    "cite_file": "raison.explaining.files.entry_points",
    "doctor": "raison.explaining.diagnosis",
    "evaluate": "raison.judging.evaluate",
    "compare": "raison.judging.compare",
    "audit": "raison.studies.kinds.audit.work",
    "Prompt": "raison.text.prompts",
    "Served": "raison.models.served.request_settings",
    "save": "raison.report.pages.saving",
    "log": "raison.report.pages.tracking",
    "show": "raison.web.component.display",
    "template": "raison.text.template",
    "Widget": "raison.web.component.widget",
}
_OPTIONAL = ("Widget",)
"""Needs an optional dependency: `from raison import *` omits it."""
_PACKAGES = ("methods", "metrics", "data")


def __getattr__(name: str) -> object:
    if name in _FUNCTIONS:
        return vars(_imported(_FUNCTIONS[name]))[name]
    if name in _PACKAGES:
        return _imported(f"raison.{name}")
    raise AttributeError(f"module 'raison' has no attribute {name!r}; it has {', '.join(__all__)}")


def _imported(name: str) -> ModuleType:
    """A module; the caller's random state is as before, although rich draws numbers when it is imported."""
    if name in sys.modules:
        # An imported module draws nothing, and another thread's draws must not be undone. A module that is being
        # imported is waited for.
        return importlib.import_module(name)
    state = random.getstate()
    try:
        return importlib.import_module(name)
    finally:
        random.setstate(state)


def __dir__() -> list[str]:
    return [*__all__, *_OPTIONAL]
