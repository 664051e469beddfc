"""Generators: queries to candidates."""
