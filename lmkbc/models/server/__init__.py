"""OpenAI-compatible servers: bounded and resumable requests, and reported failures."""
