"""A recipe's table `link`: what it may say, and that what makes no sense is named."""

from typing import Any

import pytest
from opened import part

from lmkbc import InputError, Relation
from lmkbc.link.linker import Linker

WORDS = {"component": "minimal23/words"}


def test_relations_are_known_by_any_name_and_only_the_edition_s_count(relations: dict[str, Relation]) -> None:
    linking = part("link", relations, strategies={"rivers": ["first"], "Spouses": ["keyword", "first"]})
    edition = {name: relations[name] for name in ("Rivers", "Causes")}
    rivers, causes = (relations[name].name for name in edition)
    plain = Linker(edition, settings=linking, every=relations).kinds
    assert (set(plain), plain[rivers].strategies) == ({rivers, causes}, ("first",))
    worded = {"component": "llmke23/link", "strategies": {"rivers": ["first"], "*": ["class", "first"]}}
    others = part("link", relations, **worded, keywords={"causes": ["X"]})
    kinds = Linker(edition, settings=others, every=relations).kinds
    assert (kinds[rivers].strategies, kinds[causes].strategies) == (("first",), ("class", "first"))
    assert (kinds[rivers].keywords, kinds[causes].keywords) == (plain[rivers].keywords, ("x",))


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"strategies": {"river": ["first"]}}, "'river', which is no relation: did you mean 'rivers'"),
        ({"component": "llmke23/link", "keywords": {"river": ["x"]}}, "'river', which is no relation"),
        ({"strategies": {"rivers": ["firts"]}}, "strategies of rivers: unknown linking strategy 'firts': did you mean"),
        ({"strategies": ["frist"]}, "strategies: unknown linking strategy 'frist'"),
        ({"strategies": ["model"]}, "link: strategies asks a model"),
        ({"default": ["first"]}, "no setting 'default' any more: write strategies"),
        ({"strategies": {"rivers": ["model"]}}, "asks a model: name it in link.ask"),
        ({"evidence": ["serach"]}, "link: setting 'evidence\\[0\\]' is 'serach': did you mean 'search'"),
        ({"typed": ["river"]}, "'river', which is no relation"),
        (
            {**WORDS, "searched": {"rivers": "the river"}},
            "searched.rivers is 'the river': say with {{ object }} where the name",
        ),
        ({**WORDS, "known": {"rivers": {"Don": "x"}}}, "known.rivers names 'x', which is no QID: write one like 'Q42'"),
        ({"unlinked": "keep"}, "link: setting 'unlinked' is 'keep'"),
        ({"strategies": {"rivers": 3}}, "link: setting 'strategies"),
        ({"strategy": {}}, "link has no setting 'strategy': did you mean 'strategies'"),
    ],
)
def test_what_makes_no_sense_is_named(relations: dict[str, Relation], table: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        part("link", relations, **table)
