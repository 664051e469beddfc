"""Knowledge base construction from language models. The public names that relations and editions import."""

from lmkbc.score import Metric
from lmkbc.scorers import AliasScorer, IdScorer, MatchingScorer, ValueScorer
from lmkbc.shape import EntityType, Precondition, Shape
from lmkbc.types import Download, Edition, Published, Relation

__all__ = [
    "AliasScorer",
    "Download",
    "Edition",
    "EntityType",
    "IdScorer",
    "MatchingScorer",
    "Metric",
    "Precondition",
    "Published",
    "Relation",
    "Shape",
    "ValueScorer",
]
