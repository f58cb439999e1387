"""`raison serve`: explanations over HTTP. docs/serve.md describes requests and answers."""
