"""A run as a page: what a browser shows of a run, from one file that needs no network."""
