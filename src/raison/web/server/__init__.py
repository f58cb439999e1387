"""`raison serve`: explanations over HTTP. docs/serve.md says what is asked and answered."""
