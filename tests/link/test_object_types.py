import re
from dataclasses import replace

from space import SPACE

from lmkbc import registry
from lmkbc.link.disambiguation import choose
from lmkbc.link.hits import bundled
from lmkbc.testing import Hit, ObjectType


def test_the_bundled_table_is_sound() -> None:
    for qid, kind in bundled().types.items():
        for strategy in kind.strategies:
            registry.STRATEGIES.check(strategy)
        for named in (qid, *kind.subclasses, *kind.known.values()):
            assert re.fullmatch(r"Q[1-9]\d*", named)
        assert qid not in kind.subclasses
        assert "known" in kind.strategies or not kind.known
        assert "keyword" in kind.strategies or not kind.keywords


def test_every_entity_type_of_a_relation_has_an_entry_or_the_defaults() -> None:
    for relation in SPACE.relations.values():
        assert bundled().get(relation.object_type.qid).strategies


def test_classes_reach_through_several_levels() -> None:
    kinds = {"Q1": ObjectType(qid="Q1", subclasses=("Q2",)), "Q2": ObjectType(qid="Q2", subclasses=("Q3", "Q1"))}
    types = replace(bundled(), types=kinds)
    assert types.fits(["Q9", "Q3"], "Q1")
    assert not types.fits(["Q9"], "Q1")
    assert types.kin("Q1", "Q3")
    assert types.kin("Q3", "Q1")
    assert not types.kin("Q9", "Q1")


def test_keywords_prefer_but_never_empty() -> None:
    kind = ObjectType(qid="Q1", keywords=("book",), strategies=("keyword", "first"))
    asked = replace(kind, strategies=("keyword", "model"))
    film, book = Hit("Q2", description="film"), Hit("Q3", description="Book by x")
    assert choose([film, book], kind) == ([book], "keyword")
    assert choose([film], kind) == ([film], "first")
    assert choose([film, book, book], asked) == ([book, book], "keyword")
    assert choose([], kind) == ((), "no hit")
