"""Probing benchmarks, and controls that separate recall from learning."""
