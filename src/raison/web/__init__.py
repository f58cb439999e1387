"""The web face, beside the command line: `server/` answers over HTTP, the page's component shows."""
