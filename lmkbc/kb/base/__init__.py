"""A knowledge base as it lies on disk: its columns, its manifest and its facts."""
