"""Language models that are reached through a server with OpenAI's interface: asking, remembering, understanding."""
