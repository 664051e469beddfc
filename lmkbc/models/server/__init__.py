"""OpenAI-compatible servers: bounded, resumable, and honest about what failed."""
