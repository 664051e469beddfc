"""The default generator: needs no language model and no network, only an edition's train split."""

from lmkbc.generate.embedded.encoder import Encoder, find_encoder
from lmkbc.generate.embedded.generator import EmbeddedGenerator

__all__ = ["EmbeddedGenerator", "Encoder", "find_encoder"]
