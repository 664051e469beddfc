"""Training of masked language models on verbalised facts, with the controls that tell recall from learning."""

from lmkbc.files.atomic import Kind

MODEL = Kind("a trained model", "training.json")
"""The directory that a training leaves, and what is replaced by the next."""
