"""HTML building blocks: escaping, package files, the shell of a standalone page."""

import base64
import hashlib
import html
from importlib.resources import files

_UNPRINTABLE = dict.fromkeys([0, *range(0xD800, 0xE000)], "\ufffd")
# HTML reads a carriage return as a line feed unless it is written as a reference.
_RETURN = {13: "&#13;"}


def escape(text: object) -> str:
    """Text for element content and quoted attributes; what HTML cannot hold becomes the replacement character."""
    return html.escape(str(text).translate(_UNPRINTABLE)).translate(_RETURN)


def asset(name: str) -> str:
    """A file beside this one."""
    return files("raison.report").joinpath(name).read_text("utf-8")


def document(title: str, body: str, styles: tuple[str, ...], script: str = "") -> str:
    """A standalone HTML page.

    Its policy keeps it from loading anything and from running any script but this one, told by its hash, whatever the
    texts hold.
    """
    css = "\n".join(asset(name) for name in styles)
    code = f"<script>\n{script}</script>\n" if script else ""
    allowed = f"'sha256-{_hash(script)}'" if script else "'none'"
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src {allowed}; \
style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(title)}</title>
<style>
{css}</style>
</head>
<body>
{body}
{code}</body>
</html>
"""


def _hash(script: str) -> str:
    """As browsers compute it, from what stands between the script's tags."""
    return base64.b64encode(hashlib.sha256(f"\n{script}".encode()).digest()).decode()
