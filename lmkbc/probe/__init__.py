"""Probing benchmarks, and what is recall and what is learned."""
