"""Language models behind a server with OpenAI's interface: requests, stored answers and their parsing."""
