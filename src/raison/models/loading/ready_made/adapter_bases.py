"""Which base an adapter's card means: a known one, or a folder with the weights that the adapter was trained on."""

from pathlib import Path

from raison.core.errors import LoadError
from raison.jobs.file_digest import sha256_of
from raison.models.loading.ready_made import base_weights


def weights_digest(folder: Path) -> str:
    """The sha256 of a folder's safetensors weights, in the order of their names. Raises LoadError."""
    try:
        return sha256_of(sorted(folder.glob("*.safetensors")))
    except OSError as error:
        raise LoadError(f"cannot read {error.filename or folder}: {error.strerror or error}.") from error


def base_of(adapter: Path, base: str, sha256: str) -> Path:
    """The folder of an adapter's base, by the name and the digest in its card; "" is no digest, and fits any weights.

    A relative folder is looked for in the working directory, then in the adapter's folder. Raises LoadError if it is
    missing or has other weights.
    """
    places = dict.fromkeys((Path(base), adapter / base))
    found = {place: weights_digest(place) if sha256 else "" for place in places if place.is_dir()}
    for place, digest in found.items():
        if digest == sha256:
            return place
    if base in base_weights.names() and sha256 in ("", base_weights.base_named(base).sha256):
        return base_weights.fetch(base)
    if found:
        place, digest = next(iter(found.items()))
        raise LoadError(
            f"cannot load the adapter {adapter}: its base {place} has other weights than in its training (sha256 "
            f"{digest[:12]}... instead of {sha256[:12]}...): put the old weights back, or train the adapter again."
        )
    looked = " and ".join(f"'{place}'" for place in places)
    raise LoadError(
        f"cannot load the adapter {adapter}: its base '{base}' is neither a folder (looked for {looked}) nor one of "
        f'{", ".join(base_weights.names())}: put the base there, or write its folder as "base" into '
        f"{adapter / 'card.json'}."
    )
