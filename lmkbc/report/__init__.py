"""A run as a page: one file that a browser shows without a network."""
