"""Generators: from queries to candidates."""
