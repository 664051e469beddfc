"""Audit of a knowledge base: a sample that a person labels, its precision, and facts beside what is known already."""
