"""Cases that every component of a kind keeps to, for the tests of plug-ins. Nothing of the engine imports them.

`exports`: what a format writes of facts. A failed case is an AssertionError, so any runner of tests shows it. The names
below are what the tests of a generator or of a rule make: what it gets, what it returns, and the rule of a table.
"""

from lmkbc.notes import Notes
from lmkbc.select.ranking import Ranking
from lmkbc.select.rule import build
from lmkbc.session.run import Run
from lmkbc.types import Candidate, CandidateSet, Dropped, Example, GoldObject, Nil, Query, Source, State

__all__ = [
    "Candidate",
    "CandidateSet",
    "Dropped",
    "Example",
    "GoldObject",
    "Nil",
    "Notes",
    "Query",
    "Ranking",
    "Run",
    "Source",
    "State",
    "build",
]
