"""Linking: candidate texts to Wikidata's QIDs, with the evidence for each."""

from __future__ import annotations

from lmkbc.link.evidence import Hit, Link
from lmkbc.link.linker import Linker
from lmkbc.link.search_table import SearchTable
from lmkbc.link.train_objects import TrainObjects

__all__ = ["Hit", "Link", "Linker", "SearchTable", "TrainObjects"]
