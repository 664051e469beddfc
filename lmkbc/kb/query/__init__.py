"""Queries over a knowledge base."""
