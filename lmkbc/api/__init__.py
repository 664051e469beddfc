"""Functions for Python callers, named after the commands. They print nothing, and return tables as data frames."""
