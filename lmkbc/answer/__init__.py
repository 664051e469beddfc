"""Parsing of a model's text into objects."""
