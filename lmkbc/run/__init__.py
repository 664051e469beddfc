"""A run: the data and models that its steps share, its subset of a split, its directory, and reading it again."""
