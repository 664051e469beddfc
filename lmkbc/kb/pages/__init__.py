"""A knowledge base as a folder of pages: contents, confidence, and every entity with its facts."""
