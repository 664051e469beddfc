"""Cases that every component of a kind keeps to, for the tests of plug-ins. Nothing of the engine imports them.

`exports`: what a format writes of facts. A failed case is an AssertionError, so any runner of tests shows it. The names
below are what generators, rules, linking strategies and back ends get and return. `build` makes the rule of a table.
"""

from lmkbc.link.hits import Hit, ObjectType
from lmkbc.models.base import Reply
from lmkbc.notes import Notes, Passage, Replies
from lmkbc.select.ranking import Ranking
from lmkbc.select.rule import build
from lmkbc.session.run import Run
from lmkbc.types import Candidate, CandidateSet, Dropped, Example, GoldObject, Nil, Prediction, Query, Source, State

__all__ = [
    "Candidate",
    "CandidateSet",
    "Dropped",
    "Example",
    "GoldObject",
    "Hit",
    "Nil",
    "Notes",
    "ObjectType",
    "Passage",
    "Prediction",
    "Query",
    "Ranking",
    "Replies",
    "Reply",
    "Run",
    "Source",
    "State",
    "build",
]
