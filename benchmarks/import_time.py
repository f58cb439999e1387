"""Seconds of `import raison`, beside the interpreter alone and `import torch`, each in a fresh process."""

import subprocess
import sys

from common import alternately, save


def start(code: str) -> None:
    subprocess.run([sys.executable, "-c", code], check=True)


def main() -> None:
    codes = {
        "python alone": "pass",
        "import raison": "import raison",
        "raison --help": "import raison.cli",
        "import torch": "import torch",
    }
    found = alternately({name: lambda code=code: start(code) for name, code in codes.items()}, rounds=7)
    alone = found["python alone"]
    save("import_time", [{"what": name, "s": taken, "s beyond python": taken - alone} for name, taken in found.items()])


if __name__ == "__main__":
    main()
