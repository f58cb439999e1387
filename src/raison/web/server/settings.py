"""The settings of a server."""

from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated

from raison.core.errors import InputError
from raison.core.settings.fields import Setting

BODY = 1 << 18
"""Maximum number of bytes of a request."""
VIEW = 1 << 21
"""Maximum number of bytes of a request to show explanations."""
ANSWER = 1 << 22
"""Maximum number of bytes of an answer."""
TOKEN = "RAISON_TOKEN"
"""The environment variable that may hold the token, which a command line would show to all users of the machine."""
SHORTEST = 16
"""Minimum number of characters of a token."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one request, and of waiting requests."""

    characters: Annotated[
        int, Setting("Maximum number of characters of a request's texts.", 1, options=("--max-characters",))
    ] = 20_000
    passes: Annotated[
        int,
        Setting(
            "Maximum number of forward and backward passes of one result: of all its labels, output tokens or "
            "statements together.",
            1,
            options=("--max-passes",),
        ),
    ] = 5_000
    seconds: Annotated[
        int,
        Setting("Maximum number of seconds for requests that are explained together.", 1, options=("--max-seconds",)),
    ] = 60
    new_tokens: Annotated[
        int,
        Setting(
            "Maximum number of tokens that a language model generates for a request.", 20, options=("--max-new-tokens",)
        ),
    ] = 50
    waiting: Annotated[int, Setting("Maximum number of waiting requests per model.", 1, options=("--max-waiting",))] = (
        256
    )
    waiting_each: Annotated[
        int, Setting("Maximum number of waiting requests of one client per model.", 1, options=("--max-waiting-each",))
    ] = 16
    keep: Annotated[int, Setting("MiB of results that are stored for identical requests; 0 stores none.", 0)] = 64


@dataclass(frozen=True, slots=True)
class Access:
    """Who may send requests, and under which host names. `token` None requires none."""

    host: Annotated[str, Setting("Address to listen on.")] = "127.0.0.1"
    port: Annotated[int, Setting("Port to listen on.", 0, most=65535)] = 8000
    token: Annotated[
        str | None, Setting(f"Require this token ({TOKEN} does the same); needed beyond this machine.")
    ] = None
    behind_proxy: Annotated[
        bool, Setting("A proxy in front authenticates clients; its X-Forwarded-For names the client.")
    ] = False
    allow_host: Annotated[
        tuple[str, ...], Setting("Comma-separated host names of the server besides its address.")
    ] = ()

    def check(self) -> None:
        """Raise InputError unless access is restricted as intended."""
        if self.token is not None and not (self.token.isascii() and self.token.isprintable() and " " not in self.token):
            raise InputError("a token must consist of printable ASCII characters without spaces.")
        if self.token is not None and len(self.token) < SHORTEST:
            raise InputError(f"a token needs at least {SHORTEST} characters, so that nobody can guess it.")
        if not self.is_local and self.token is None and not self.behind_proxy:
            raise InputError(
                f"--host {self.host} lets other machines in: give --token (or {TOKEN}), or --behind-proxy if a proxy "
                "in front authenticates clients."
            )

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach the address."""
        if self.host == "localhost":
            return True
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return False


@dataclass(frozen=True, slots=True)
class VisibleFolders:
    """What requests can see besides the models. `runs` None shows no run."""

    runs: Annotated[Path | None, Setting("Folder of comparisons, explained files and audits to show.")] = None
    log_texts: Annotated[bool, Setting("Also log the texts of requests.")] = False

    def check(self) -> None:
        """Raise InputError if the folder does not exist."""
        if self.runs is not None and not self.runs.is_dir():
            raise InputError(f"--runs {self.runs} is not a folder.")
