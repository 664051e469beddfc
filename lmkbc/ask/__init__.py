"""Relation, query and examples to what a model reads."""
