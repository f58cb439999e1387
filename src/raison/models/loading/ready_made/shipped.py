"""The files of the ready-made models are checked before they are used.

Those that the README shows first are included in the package; those that only studies need are stored with the studies,
in a clone of the repository.

`python -m raison.models.loading.ready_made.shipped` records sizes and digests; run it after one of them was retrained.
"""

import json
from functools import cache
from pathlib import Path

from raison.core.errors import LoadError
from raison.jobs.file_digest import sha256_of

FOLDER = Path(__file__).parents[2] / "demo"
LIST = FOLDER / "shipped.json"
STUDIES = Path(__file__).parents[5] / "studies" / "models"
_KEPT = (".json", ".safetensors")
_WAY_OUT = "install raison again (pip install --force-reinstall --no-deps raison)"


def names() -> tuple[str, ...]:
    """The models that this installation has."""
    return tuple(sorted(path.name for path in (*FOLDER.glob("*"), *STUDIES.glob("*")) if path.is_dir()))


def elsewhere(name: str) -> bool:
    """Whether there is a ready-made model of this name that this installation lacks."""
    return name not in names() and any(place.startswith(f"{name}/") for place in _listed())


def folder(name: str) -> Path:
    """The folder of the model `name`."""
    return FOLDER / name if (FOLDER / name).is_dir() else STUDIES / name


def files(folder: Path) -> tuple[Path, ...]:
    """The files of a model, or of all of them."""
    return tuple(sorted(path for path in folder.rglob("*") if path.suffix in _KEPT and path != LIST))


def check(name: str) -> None:
    """LoadError unless every file of the model `name` has the size and the sha256 that it shipped with.

    Each process reads a file once, and again after a change.
    """
    listed = {place: tuple(known) for place, known in _listed().items() if place.startswith(f"{name}/")}
    there = _places(folder(name).parent, name)
    for place in sorted(listed.keys() | there.keys()):
        if place not in there:
            raise LoadError(f"{place} of the ready-made models is missing: {_WAY_OUT}.")
        if place not in listed:
            raise LoadError(f"{place} is not one of the files that come with the ready-made models: {_WAY_OUT}.")
        size, digest = int(listed[place][0]), str(listed[place][1])
        stat = there[place].stat()
        actual = _digest(there[place], (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns))
        if (stat.st_size, actual) != (size, digest):
            raise LoadError(
                f"{place} of the ready-made models has {stat.st_size:,} bytes and the sha256 {actual[:12]}... instead "
                f"of {size:,} and {digest[:12]}... (damaged or changed; not used): {_WAY_OUT}."
            )


def write() -> None:
    """Write down sizes and digests of the files as they are now."""
    there = {place: path for name in names() for place, path in _places(folder(name).parent, name).items()}
    entries = {place: [path.stat().st_size, sha256_of([path])] for place, path in there.items()}
    lines = ",\n".join(f" {json.dumps(place)}: {json.dumps(known)}" for place, known in entries.items())
    LIST.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


def _places(parent: Path, name: str) -> dict[str, Path]:
    return {path.relative_to(parent).as_posix(): path for path in files(parent / name)}


@cache
def _listed() -> dict[str, list[int | str]]:
    try:
        entries: dict[str, list[int | str]] = json.loads(LIST.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise LoadError(f"cannot read {LIST} ({error}): {_WAY_OUT}.") from None
    return entries


@cache
def _digest(path: Path, _identity: tuple[int, ...]) -> str:
    return sha256_of([path])


if __name__ == "__main__":
    write()
