"""Probing benchmarks and controls: what a model recalls, and what a training split alone teaches."""
