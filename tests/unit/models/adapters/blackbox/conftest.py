"""Every test has a store of its own, no key, and short pauses."""

from tests.fake_server import apart as apart
