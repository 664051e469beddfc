"""Matching of answers with gold, and the averages of the official tables."""
