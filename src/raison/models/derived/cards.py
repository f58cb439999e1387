"""Cards of what was trained for a model: a JSON file in its folder that describes the content and the model it is
for."""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from safetensors.torch import save_file
from torch import Tensor

from raison.core.errors import DataError, LoadError
from raison.core.settings.reading import json_value
from raison.jobs import disk

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

C = TypeVar("C")
FILE = "explainer.json"
SCHEMA = 2
"""2: with the identity and the logits of the explained model; cards of 1 are read as well."""
_SIGNS = {"goals": "aml", "scale": "amortized_shap", "weights": "at2"}
"""Entries that only the cards of one method have."""


def write_card(folder: Path, card: "DataclassInstance") -> None:
    """Save a card. It is written last and marks a finished folder."""
    content = {"schema": SCHEMA, **asdict(card)}
    disk.write_whole(folder / FILE, json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def read_card(
    folder: Path, build: Callable[[dict[str, Any]], C], lacking: str, method: str, trained: str = "the explainer"
) -> C:
    """The card of a method in a folder, which `build` makes from its content.

    Raises LoadError with `lacking` if there is no card, or with the advice to train again if it is broken; of another
    method's card, it names the method.
    """
    path, content = folder / FILE, {}
    try:
        content = json_value(path.read_text(encoding="utf-8"))
        if content.pop("schema") > SCHEMA:
            raise LoadError(f"{path} was written by a newer version of raison: upgrade raison.")
        return build(content)
    except FileNotFoundError:
        raise LoadError(lacking) from None
    except (DataError, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        others = [method for sign, method in _SIGNS.items() if isinstance(content, dict) and sign in content]
        if others and others[0] != method:
            raise LoadError(
                f"{folder} holds what was trained for {others[0]}, not for {method}: use "
                f"{others[0]}(checkpoint='{folder}'), or name a folder of {method}."
            ) from error
        raise LoadError(f"cannot read {path}: {str(error).rstrip('.')}. Train {trained} again.") from error


def save_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Save trained weights."""
    with disk.whole_file(path) as part:
        save_file(dict(tensors), part, metadata={"format": "pt"})
        # safetensors makes files that only their owner may read; this one may be shared.
        part.chmod(0o644)
