"""Passages that a prompt shows before the question, and their providers."""
