"""The web interface: `server/` answers over HTTP, `component/` displays results."""
