"""Knowledge base construction from language models.

The public names are the types of results, a function for each command, and the parts that relations, editions, rules
and generators are made of. A name is imported when it is first used, so that `import lmkbc` is fast.
"""

from __future__ import annotations

import logging
import os
import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lmkbc.api.asking import Answer, AnswerObject, ask
    from lmkbc.api.comparing import Comparisons, compare
    from lmkbc.api.entity_linking import link
    from lmkbc.api.history import Runs, runs
    from lmkbc.api.own_domain import LabelledData, init, make_data, new_relations, trust
    from lmkbc.api.pages import Page, report
    from lmkbc.api.predicting import PredictedRun, predict, read_run
    from lmkbc.api.scores import Scores, score
    from lmkbc.api.tuning import Tuning, tune
    from lmkbc.edition import Download, Edition, Published
    from lmkbc.errors import InputError, LmkbcError
    from lmkbc.generate.spec import GeneratorSpec
    from lmkbc.kb.api.auditing import Audit, audit
    from lmkbc.kb.api.building import KnowledgeBase, build
    from lmkbc.kb.api.comparing_bases import BaseComparison, compare_bases
    from lmkbc.kb.api.exporting import Export, export
    from lmkbc.kb.api.querying import query
    from lmkbc.kb.api.reviewing import review
    from lmkbc.kb.audit.decisions import ReviewedBase
    from lmkbc.kb.query.result import QueryResult
    from lmkbc.link.explained import LinkReport
    from lmkbc.relation import EntityType, Precondition, Relation, Shape
    from lmkbc.scoring.matchers import AliasScorer, IdScorer, KindScorer, MatchingScorer, ValueScorer
    from lmkbc.scoring.table import Metric
    from lmkbc.select.rule import Choice, PrefixRule, Real, Rule, Whole
    from lmkbc.workspace import Workspace

_HOMES = {
    "lmkbc.api.asking": ("Answer", "AnswerObject", "ask"),
    "lmkbc.kb.api.auditing": ("Audit", "audit"),
    "lmkbc.kb.api.building": ("KnowledgeBase", "build"),
    "lmkbc.api.comparing": ("Comparisons", "compare"),
    "lmkbc.api.entity_linking": ("link",),
    "lmkbc.kb.api.exporting": ("Export", "export"),
    "lmkbc.api.own_domain": ("LabelledData", "init", "make_data", "new_relations", "trust"),
    "lmkbc.api.pages": ("Page", "report"),
    "lmkbc.api.predicting": ("PredictedRun", "predict", "read_run"),
    "lmkbc.kb.api.querying": ("query",),
    "lmkbc.api.history": ("Runs", "runs"),
    "lmkbc.kb.api.reviewing": ("review",),
    "lmkbc.api.scores": ("Scores", "score"),
    "lmkbc.api.tuning": ("Tuning", "tune"),
    "lmkbc.edition": ("Download", "Edition", "Published"),
    "lmkbc.errors": ("InputError", "LmkbcError"),
    "lmkbc.generate.spec": ("GeneratorSpec",),
    "lmkbc.kb.api.comparing_bases": ("BaseComparison", "compare_bases"),
    "lmkbc.kb.audit.decisions": ("ReviewedBase",),
    "lmkbc.kb.query.result": ("QueryResult",),
    "lmkbc.link.explained": ("LinkReport",),
    "lmkbc.relation": ("EntityType", "Precondition", "Relation", "Shape"),
    "lmkbc.scoring.matchers": ("AliasScorer", "IdScorer", "KindScorer", "MatchingScorer", "ValueScorer"),
    "lmkbc.scoring.table": ("Metric",),
    "lmkbc.select.rule": ("Choice", "PrefixRule", "Real", "Rule", "Whole"),
    "lmkbc.workspace": ("Workspace",),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "AliasScorer",
    "Answer",
    "AnswerObject",
    "Audit",
    "BaseComparison",
    "Choice",
    "Comparisons",
    "Download",
    "Edition",
    "EntityType",
    "Export",
    "GeneratorSpec",
    "IdScorer",
    "InputError",
    "KindScorer",
    "KnowledgeBase",
    "LabelledData",
    "LinkReport",
    "LmkbcError",
    "MatchingScorer",
    "Metric",
    "Page",
    "Precondition",
    "PredictedRun",
    "PrefixRule",
    "Published",
    "QueryResult",
    "Real",
    "Relation",
    "ReviewedBase",
    "Rule",
    "Runs",
    "Scores",
    "Shape",
    "Tuning",
    "ValueScorer",
    "Whole",
    "Workspace",
    "ask",
    "audit",
    "build",
    "compare",
    "compare_bases",
    "export",
    "init",
    "link",
    "make_data",
    "new_relations",
    "predict",
    "query",
    "read_run",
    "report",
    "review",
    "runs",
    "score",
    "trust",
    "tune",
]

SPINS = "1000"
"""Rounds that a model's thread waits for the others before it sleeps. The usual 300,000 take a busy machine's time."""
if "OMP_WAIT_POLICY" not in os.environ:  # read when torch is loaded
    os.environ.setdefault("GOMP_SPINCOUNT", SPINS)
logging.getLogger(__name__).addHandler(logging.NullHandler())  # applications configure logging themselves


def __getattr__(name: str) -> Any:
    """Return a public name, imported from the module that defines it."""
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    hint = f"; call {__name__}.score, or the method of a run" if name == "evaluate" else ""
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}")


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(__all__)


class _Package(ModuleType):
    """The package as a module that keeps `tune` and `report` as functions.

    Importing the subpackage `lmkbc.tune` would otherwise replace the function `lmkbc.tune`.
    """

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _HOME and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
