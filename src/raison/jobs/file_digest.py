"""The digest of files, which may be larger than memory."""

import hashlib
from collections.abc import Iterable
from pathlib import Path


def sha256_of(paths: Iterable[Path]) -> str:
    """The SHA-256 of the files' bytes, one after the other, in hexadecimal; they are read in blocks.

    Raises OSError if one cannot be read.
    """
    digest = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            hashlib.file_digest(file, lambda: digest)
    return digest.hexdigest()
