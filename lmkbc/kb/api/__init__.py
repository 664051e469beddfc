"""Functions for Python callers, named after the commands of a knowledge base."""
