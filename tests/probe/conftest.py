"""The tiny masked models, for benchmarks that ask them."""

from tiny_families import backbone, save_model

__all__ = ["backbone", "save_model"]
