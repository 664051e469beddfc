"""Passages that a prompt holds before it asks, and where they come from."""
