"""A server in a process of its own, as `raison serve` starts it, and requests to it."""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MODEL = "demo/sst2"
PATIENCE = 300.0


@dataclass
class Server:
    """A server that runs: where, and what it said on stderr."""

    process: "subprocess.Popen[str]"
    port: int
    said: list[str] = field(default_factory=list)

    @property
    def megabytes(self) -> float:
        """Memory of the process that is resident."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(r"VmRSS:\s+(\d+) kB", status)
        assert found is not None
        return int(found[1]) / 1024

    @property
    def processor_seconds(self) -> float:
        """Time of all its threads on a processor so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def listen(self) -> None:
        """Keep what the server says, so that it never waits for a reader."""
        assert self.process.stderr is not None
        self.said.extend(self.process.stderr)


@contextmanager
def started(*options: str) -> Iterator[Server]:
    """A server of demo/sst2 with further options, ready to answer."""
    command = [
        sys.executable,
        "-c",
        "from raison.cli import main; main()",
        "serve",
        "-m",
        MODEL,
        "--port",
        "0",
        *options,
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stderr is not None
        found = re.search(r"http://127\.0\.0\.1:(\d+)/", process.stderr.readline())
        assert found is not None
        server = Server(process, int(found[1]))
        thread = threading.Thread(target=server.listen)
        thread.start()
        try:
            yield server
        finally:
            process.send_signal(signal.SIGINT)
            thread.join()


class Connection:
    """A client that keeps its connection."""

    def __init__(self, port: int, name: str) -> None:
        self._name = name
        self._http = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)

    def post(self, path: str, body: dict[str, Any]) -> tuple[int, Any, dict[str, str]]:
        """The status, the answer's JSON and its headers."""
        headers = {"Content-Type": "application/json", "X-Raison-Client": self._name}
        try:
            self._http.request("POST", path, json.dumps(body), headers)
            found = self._http.getresponse()
        except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
            # The server closed a connection that was idle.
            self._http.close()
            self._http.request("POST", path, json.dumps(body), headers)
            found = self._http.getresponse()
        return found.status, json.loads(found.read()), dict(found.getheaders())

    def leave(self, path: str, body: dict[str, Any], seconds: float) -> None:
        """Ask, and close the connection without waiting for the answer for long."""
        headers = {"Content-Type": "application/json", "X-Raison-Client": self._name}
        self._http.request("POST", path, json.dumps(body), headers)
        threading.Event().wait(seconds)
        self._http.close()
