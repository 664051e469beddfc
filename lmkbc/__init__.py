"""Knowledge base construction from language models. The public names that relations and editions import."""

from lmkbc.score import AliasScorer, IdScorer, MatchingScorer, Metric, ValueScorer
from lmkbc.types import Download, Edition, EntityType, Published, Relation, Shape

__all__ = [
    "AliasScorer",
    "Download",
    "Edition",
    "EntityType",
    "IdScorer",
    "MatchingScorer",
    "Metric",
    "Published",
    "Relation",
    "Shape",
    "ValueScorer",
]
