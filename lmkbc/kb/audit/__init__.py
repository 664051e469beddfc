"""Audit of a knowledge base: a sample that a person labels, its precision, and a comparison with known facts."""
