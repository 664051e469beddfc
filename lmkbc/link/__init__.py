"""Linking: candidate texts to Wikidata's QIDs, with the evidence for each."""

from __future__ import annotations

from lmkbc.link.evidence import Hit, Link
from lmkbc.link.index import AliasIndex
from lmkbc.link.linker import Linker
from lmkbc.link.live import Wikidata
from lmkbc.link.report import Report, explain, link_file
from lmkbc.link.search_table import SearchTable
from lmkbc.link.train_objects import TrainObjects
from lmkbc.link.wikidata import Client

__all__ = [
    "AliasIndex",
    "Client",
    "Hit",
    "Link",
    "Linker",
    "Report",
    "SearchTable",
    "TrainObjects",
    "Wikidata",
    "explain",
    "link_file",
]
