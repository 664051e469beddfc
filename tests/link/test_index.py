import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz.distance import OSA
from stand_in import item

from lmkbc import EntityType, InputError
from lmkbc.link import wordings
from lmkbc.link.index import AliasIndex
from lmkbc.link.index_sources import build_index
from lmkbc.names import name_key
from lmkbc.testing import Example, GoldObject, Hit, Query
from tests.small import small_relation

WORDS = st.text(st.sampled_from("abc d"), min_size=1, max_size=10).map(str.strip).filter(bool)


def entity(
    qid: str, name: str, names: Sequence[str] = (), *, about: str = "", classes: Sequence[str] = (), links: int = 0
) -> dict[str, Any]:
    """An entity of a dump. names: its aliases. links: number of its pages in wikis."""
    more = {"aliases": {"en": [{"language": "en", "value": one} for one in names]}} if names else {}
    said = {"en": {"language": "en", "value": about}} if about else {}
    return {**item(qid, name, classes, links=links), "descriptions": said, **more}


def build(path: Path, *entities: dict[str, Any], **sources: Any) -> AliasIndex:
    dump = path.with_name("dump.json")
    dump.write_text("[\n" + ",\n".join(map(json.dumps, entities)) + "\n]\n")
    build_index(path, dump=dump, **sources)
    return AliasIndex(path)


@pytest.mark.parametrize("length", range(1, 14))
def test_keys_one_edit_apart_meet_in_the_thirds(length: int) -> None:
    """Each edit at each place, of a key in which no letter occurs twice."""
    name = "abcdefghijklm"[:length]
    swapped = {name[:at] + name[at + 1 : at + 2] + name[at] + name[at + 2 :] for at in range(length)}
    more = {name[:at] + "z" + name[at:] for at in range(length + 1)}
    fewer = {name[:at] + name[at + 1 :] for at in range(length)} - {""}
    other = {name[:at] + "z" + name[at + 1 :] for at in range(length)}
    for one in swapped | more | fewer | other:
        assert OSA.distance(name, one) <= 1
        assert not wordings.looked_up(name).isdisjoint(wordings.filed_under(one)), one
    # names that share no letter's place are never read for each other, or a look-up would read the whole index
    assert length < 4 or wordings.looked_up(name).isdisjoint(wordings.filed_under(name[::-1]))


def test_exact_prefers_spelling_then_label_then_popularity(tmp_path: Path) -> None:
    index = build(
        tmp_path / "i",
        entity("Q1", "Paris", ("City of Light",), links=300),
        entity("Q2", "Paris", ("PARIS",), links=5),
        entity("Q3", "Paris Hilton", ("Páris",), links=900),
    )
    assert [hit.id for hit in index.exact("Paris")] == ["Q1", "Q2", "Q3"]
    assert index.exact("PARIS")[0].id == "Q2"
    assert [hit.id for hit in index.exact("páris!")] == ["Q1", "Q2", "Q3"]
    assert index.exact("city of light")[0].name == "City of Light"
    assert index.exact("") == index.exact("Rome") == ()


def test_fuzzy_ranks_and_limits(tmp_path: Path) -> None:
    index = build(
        tmp_path / "i", *(entity(f"Q{i}", name) for i, name in enumerate(["saxophone", "saxophon", "harp"], 1))
    )
    assert [hit.id for hit in index.fuzzy("saxaphone")] == ["Q1"]
    assert {hit.id for hit in index.fuzzy("saxophone")} == {"Q1", "Q2"}
    assert len(index.fuzzy("saxophone", limit=1)) == 1
    assert index.fuzzy("") == ()
    assert index.fuzzy("saxoqqone") == ()  # two edits, beside a third that is the same


def test_ids_and_labels(tmp_path: Path) -> None:
    index = build(
        tmp_path / "i",
        entity("Q5", "human", about="a person", classes=("Q1", "Q2"), links=7),
        entity("Q7", "robot"),
    )
    found = index.entities(["Q5", "Q6"])["Q5"]
    assert found is not None
    assert (found.description, found.classes, found.popularity) == ("a person", ("Q1", "Q2"), 7)
    assert index.exact("robot") == (Hit("Q7", "robot", "", (), 0, "robot"),)  # what is unknown is empty, or 0
    assert index.labels(["Q5", "Q6"]) == {"Q5": "human"}


@given(st.dictionaries(st.integers(1, 50), st.lists(st.text(max_size=12), min_size=1, max_size=3), max_size=8))
def test_every_name_finds_its_entity(tmp_path_factory: pytest.TempPathFactory, named: dict[int, list[str]]) -> None:
    entities = [entity(f"Q{number}", names[0], names) for number, names in named.items()]
    index = build(tmp_path_factory.mktemp("index") / "i", *entities)
    for number, names in named.items():
        for name in names:
            assert not name_key(name) or f"Q{number}" in [hit.id for hit in index.exact(name)]


def test_what_several_sources_say_is_merged(tmp_path: Path) -> None:
    rows = [Example(Query("Passau", "rivers"), (GoldObject(("Inn",), "Q1"),))]
    relations = {"rivers": small_relation("rivers", object_type=EntityType("river", "Q4022"))}
    dumped = entity("Q1", "Inn River", about="river", links=2)
    index = build(tmp_path / "i", dumped, splits={"mine": rows}, relations=relations)
    (hit,) = index.exact("inn river")
    assert (hit.label, hit.description, hit.classes, hit.popularity) == ("Inn", "river", ("Q4022",), 2)


def test_files_that_are_no_index(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist: build it with"):
        AliasIndex(tmp_path / "i")
    (tmp_path / "text").write_text("no database at all, but long enough to be read as one" * 40)
    with pytest.raises(InputError, match="index of version none"):
        AliasIndex(tmp_path / "text")


@pytest.mark.parametrize("text", ["", "Q", "Qx", "5", "Q1|Q2", "Q0", "Q99999999999999999999"])
def test_what_is_no_id_is_absent(tmp_path: Path, text: str) -> None:
    assert build(tmp_path / "i", entity("Q1", "Inn")).entities([text]) == {}
