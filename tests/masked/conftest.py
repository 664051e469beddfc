"""The tiny masked models, for what is read of them."""

from tiny_families import backbone, save_model

__all__ = ["backbone", "save_model"]
