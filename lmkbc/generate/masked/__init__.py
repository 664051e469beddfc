"""Candidates from masked language models: clozes, their ensembles, and objects of several tokens."""

from lmkbc.generate.masked.backbone import Backbone, load
from lmkbc.generate.masked.generator import MaskedGenerator
from lmkbc.generate.masked.probe import Probe

__all__ = ["Backbone", "MaskedGenerator", "Probe", "load"]
