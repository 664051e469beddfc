"""Evaluation: official scores of files, and paired comparison of runs."""
