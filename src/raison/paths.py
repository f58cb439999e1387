"""The cache folder."""

import os
import sys
from pathlib import Path


def cache_folder() -> Path:
    """RAISON_CACHE if set, otherwise the platform's folder for caches."""
    if os.environ.get("RAISON_CACHE"):
        return Path(os.environ["RAISON_CACHE"]).expanduser()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "raison" / "cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "raison"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "raison"
