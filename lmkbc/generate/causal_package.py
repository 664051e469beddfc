"""The local back end: any causal language model, the examples that its prompts share encoded once."""

from lmkbc.models.causal.decode import Completion, Decoding
from lmkbc.models.causal.model import CausalModel

__all__ = ["CausalModel", "Completion", "Decoding"]
