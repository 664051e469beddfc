"""Local causal models, with shared prefixes encoded once."""
