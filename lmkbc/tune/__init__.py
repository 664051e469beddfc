"""Tuning: the choice of a rule and its parameters for each relation, with cross-validation."""
