"""The version, where everything can read it without importing anything."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("raison")
except PackageNotFoundError:  # a checkout that was never installed
    __version__ = "0+unknown"
