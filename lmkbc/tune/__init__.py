"""Tuning: per relation, which rule and which parameters, cross-validated."""
