"""The models of `raison serve`: given by name, by name with a prompt, or in a file."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from raison.core.errors import MISTAKE, DataError, InputError
from raison.core.settings.reading import toml_value
from raison.core.settings.tables import read
from raison.studies.entries import StudyModel

_STUDIES_ONLY = {
    "labels": "labels name the classes as a study's data does: leave them out.",
    "removal": "removal is set by each request: leave it out.",
    "made": "only a study trains models: give the folder of a trained one.",
}


def served_models(
    names: Sequence[str], prompt: str | None, file: Path | None, device: str | None
) -> dict[str, StudyModel]:
    """Every model by the name that requests give. Raises InputError or DataError."""
    models = {name: StudyModel(name, prompt=prompt) for name in names}
    if prompt is not None and len(models) != 1:
        raise InputError(
            f"--prompt applies to a single language model, and there are {len(models)} --model: give each model's "
            "prompt in a file (--models)."
        )
    in_file = {} if file is None else _in_file(file)
    if twice := models.keys() & in_file.keys():
        raise InputError(f"two models are named '{min(twice)}': rename one of them in {file}.")
    models |= in_file
    if not models:
        raise InputError("no model given: pass --model NAME, or a file of models with --models.")
    return {name: one if one.device else replace(one, device=device) for name, one in models.items()}


def _in_file(path: Path) -> dict[str, StudyModel]:
    """The models of the tables [models.NAME], whose entries are those of a study file. Raises DataError."""
    # Imported here: it imports all methods, which an invalid option need not wait for.
    from raison.studies.parts import model_mistakes

    try:
        table = toml_value(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DataError(f"{path} is not TOML: {str(error).rstrip('.')}.") from None
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}.") from None
    tables = table.get("models")
    if not isinstance(tables, Mapping) or not tables or table.keys() != {"models"}:
        raise DataError(
            f"{path} is not a file of models: it needs a table [models.NAME] for each model, and nothing else."
        )
    models: dict[str, StudyModel] = {}
    mistakes: list[str] = []
    for name, entry in tables.items():
        where = f"[models.{name}]"
        models[name], wrong = read(StudyModel, entry, where, without=_STUDIES_ONLY)
        mistakes += wrong or model_mistakes(models[name], where)
    if mistakes:
        raise DataError(MISTAKE.join([f"{path} lists models that cannot be loaded:", *mistakes]))
    return models
