"""Pooling of all sources into one scored list, and the rules that decide what to keep."""
