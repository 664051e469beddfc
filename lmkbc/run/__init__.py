"""A run: what its steps share, its subset of a split, its directory, and reading it again."""
