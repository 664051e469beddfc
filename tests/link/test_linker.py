import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opened import part
from stand_in import item

from lmkbc import InputError, Relation
from lmkbc.link.disambiguation import HitChoice
from lmkbc.link.hits import Link
from lmkbc.link.index import AliasIndex
from lmkbc.link.index_sources import build_index
from lmkbc.link.linker import Linker
from lmkbc.link.search import SearchTable
from lmkbc.link.train_objects import TrainObjects
from lmkbc.testing import Candidate, Example, GoldObject, Hit, Nil, Query
from tests.candidates import candidate_set


class Described:
    """A search whose hits have classes, and which counts what it is asked."""

    knows_classes = True

    def __init__(self, hits: dict[str, list[Hit]]) -> None:
        self.hits, self.asked = hits, []

    def search(self, texts: Sequence[str]) -> dict[str, tuple[Hit, ...]]:
        self.asked += texts
        return {text: tuple(self.hits.get(text, ())) for text in texts}

    def entities(self, ids: Sequence[str], /) -> dict[str, Hit | None]:
        return {"Q1": Hit("Q2"), "Q404": None}


def linking(relations, **table: Any) -> Any:
    return part("link", relations, **table)


def one(linker: Linker, text: str, relation: str, subject: str = "s") -> Link:
    ((_, (link,)),) = linker.links([candidate_set(Query(subject, relation), (Candidate(text),))])
    return link


def test_order_of_evidence(relations, examples) -> None:
    linker = Linker(relations, TrainObjects(examples, relations), search=SearchTable({"inn": "Q9", "Isar": "Q7"}))
    assert (one(linker, "Inn", "Rivers").id, one(linker, "Inn", "rivers").evidence) == ("Q14369", "relation")
    assert one(linker, "Danuube", "rivers").evidence == "fuzzy"
    assert (one(linker, "isar", "rivers").id, one(linker, "isar", "rivers").evidence) == ("Q7", "search")
    assert one(linker, "Voice", "instruments").evidence == "known"
    assert one(linker, "Brian May", "spouses").evidence == "type"
    assert one(linker, "Lech", "rivers") == Link(None, "unlinked", "no hit", "Lech")


def test_numbers_stay_and_never_pass_for_entities(relations) -> None:
    linker = Linker(relations, search=SearchTable({"5": "Q203", "many": "Q1"}))
    assert one(linker, "5", "children") == Link("5", "literal", "number")
    assert one(linker, "many", "children").strategy == "not a number"
    assert one(linker, "5", "rivers").strategy == "a number where an entity is due"


@pytest.mark.parametrize(
    "text",
    ["x" * 500, "🎸" * 3, "שלום", "مرحبا بالعالم", "\u202eabc", "a\x00b", "\ud83d", "Lech\ud83d", "'; DROP TABLE"],
)
def test_odd_texts_stay_unlinked(relations, examples, text: str) -> None:
    assert one(Linker(relations, TrainObjects(examples, relations), search=SearchTable({})), text, "rivers").id is None


@pytest.mark.parametrize(
    ("text", "qid"),
    [
        ("Q42", "Q42"),
        (" q42 ", "Q42"),
        ("http://www.wikidata.org/entity/Q42", "Q42"),
        ("https://www.wikidata.org/wiki/Q42", "Q42"),
        ("wd:Q42", "Q42"),
        ("Q0", None),
        ("Q", None),
        ("Q42 (film)", None),
        ("https://example.org/Q42", None),
        ("", None),
    ],
)
def test_ids_in_disguise(relations, text: str, qid: str | None) -> None:
    assert one(Linker(relations), text, "rivers").id == qid


@pytest.mark.parametrize(
    ("asked", "known", "plausible"),
    [
        ("saxaphone", "saxophone", True),
        ("guitars", "guitar", True),
        ("newcastle", "new castle", True),
        ("polend", "poland", True),
        ("iraq", "iran", False),
        ("zambia", "gambia", False),
        ("kura river", "mura river", False),
        ("aba river", "alba river", False),
        ("route 66 highway", "route 67 highway", False),
    ],
)
def test_plausible_typing_errors(relations, asked: str, known: str, plausible: bool) -> None:
    train = TrainObjects([Example(Query("other", "rivers"), (GoldObject((known,), "Q9"),))], relations)
    linker = Linker(relations, train)
    assert (one(linker, asked, "rivers").evidence == "fuzzy") is plausible
    assert one(linker, known, "rivers").evidence == "relation"


def searched(relations, text: str, relation: str = "rivers") -> list[str]:
    """What is searched for a text without a hit, in its order."""
    search = Described({})
    one(Linker(relations, search=search), text, relation)
    return search.asked


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("Inn (river)", ["Inn", "Inn River"]),
        ("My Life: A Memoir", ["My Life", "My Life: A Memoir River"]),
        ("guitars", ["guitars River", "guitar"]),
        ("berries", ["berries River", "berry"]),
        ("jazz basss", ["jazz basss River"]),
        ("Yana River", []),
        ("Germany (1933-1945)", ["Germany (1933-1945) River"]),  # a historical country is not the one of today
    ],
)
def test_variants_are_searched_in_order_of_promise(relations, text: str, asked: list[str]) -> None:
    assert searched(relations, text) == [text, *asked]
    assert searched(relations, text, "instruments") == [text, *(one for one in asked if not one.endswith(" River"))]


@given(st.text(max_size=40))
def test_nothing_blank_is_searched_and_nothing_twice(relations, text: str) -> None:
    found = searched(relations, text)
    assert len(set(found)) == len(found)
    assert all(map(str.strip, found))


def test_proposals_to_answer_nothing_and_given_ids_are_left_alone(relations) -> None:
    linker = Linker(relations, search=SearchTable({"Inn": "Q1"}))
    group = candidate_set(Query("s", "rivers"), (Nil(0.3), Candidate("  "), Candidate("Inn", id="Q5")))
    assert list(linker.link([group])) == [group]


def test_bare_ids_are_checked_where_a_source_can(relations) -> None:
    assert one(Linker(relations), "q42", "rivers") == Link("Q42", "given", "unchecked", "q42")
    linker = Linker(relations, search=Described({}))
    assert one(linker, "https://www.wikidata.org/wiki/Q1", "rivers").id == "Q2"
    assert one(linker, "Q404", "rivers").strategy == "no such entity"


def test_a_hit_of_another_class_is_searched_again_with_a_type_word(relations) -> None:
    city, river = Hit("Q1", classes=("Q515",)), Hit("Q2", classes=("Q4022",))
    search = Described({"Ufa": [city], "Ufa River": [river]})
    link = one(Linker(relations, search=search), "Ufa", "rivers")
    assert (link.id, link.evidence, link.searched) == ("Q2", "re-search", "Ufa River")


def test_where_classes_are_unknown_the_name_with_its_type_word_wins(relations) -> None:
    table = SearchTable({"Ufa": "Q1", "Ufa River": "Q2", "Ob": "Q3", "Don River": "Q4"})
    linker = Linker(relations, search=table)
    assert one(linker, "Ufa", "rivers").id == "Q2"
    assert one(linker, "Ob", "rivers").id == "Q3"
    assert one(linker, "Don River", "rivers").id == "Q4"
    assert "don river river" not in table.searched


def test_misfits_are_refused_by_strict_types_and_a_last_resort_for_others(relations) -> None:
    band = Hit("Q1", classes=("Q215380",))
    search = Described({"Queen": [band], "fall": [band]})
    assert one(Linker(relations, search=search), "Queen", "spouses").id is None
    last = one(Linker(relations, search=search), "fall", "causes")
    assert (last.id, last.strategy) == ("Q1", "first of another class")


def test_fitting_hits_win_over_earlier_ones(relations) -> None:
    hits = [Hit("Q1", classes=("Q215380",)), Hit("Q2", classes=("Q5",)), Hit("Q3", classes=("Q5",))]
    link = one(Linker(relations, search=Described({"Queen": hits})), "Queen", "spouses")
    assert (link.id, link.strategy, link.ambiguous) == ("Q2", "class+first", True)


def test_nothing_is_asked_twice_and_each_round_is_one_call(relations) -> None:
    search = Described({})
    sets = [candidate_set(Query(str(i), "rivers"), (Candidate("Isar"), Candidate("ISAR"))) for i in range(5)]
    list(Linker(relations, search=search).links(sets))
    assert search.asked == ["Isar", "ISAR", "Isar River", "ISAR River"]


def test_strategies_can_be_given_per_relation_and_are_checked(relations) -> None:
    hits = {"Voice": [Hit("Q1", popularity=3), Hit("Q2", popularity=9)]}
    settings = linking(relations, strategies={"Instruments": ("popularity", "first")})
    popular = Linker(relations, search=Described(hits), settings=settings)
    assert one(popular, "Voice", "instruments").id == "Q2"
    with pytest.raises(InputError, match="strategies of instruments: unknown linking strategy 'popular': did you mean"):
        linking(relations, strategies={"instruments": ("popular",)})


def test_keywords_can_be_given_per_relation(relations) -> None:
    hits = {"Burton": [Hit("Q1", description="English town"), Hit("Q2", description="American bassist")]}
    worded = {"component": "llmke23/link", "strategies": {"Spouses": ["keyword", "first"]}}
    settings = part("link", relations, **worded, keywords={"spouses": ["Bassist"]})
    linker = Linker(relations, search=Described(hits), settings=settings)
    assert one(linker, "Burton", "spouses").id == "Q2"
    with pytest.raises(InputError, match="'spouse', which is no relation: did you mean 'spouses'"):
        part("link", relations, **worded, keywords={"spouse": []})


def test_a_language_model_chooses_among_described_hits(relations) -> None:
    hits = {
        "Inn": [Hit("Q1", description="hotel"), Hit("Q2", description="river")],
        "Ill": [Hit("Q3", description="brook"), Hit("Q4", description="village")],
    }

    def ask(questions: Sequence[HitChoice]) -> list[int | None]:
        rounds.append(len(questions))
        return [next((at for at, hit in enumerate(one.hits) if hit.description == "river"), None) for one in questions]

    rounds: list[int] = []
    how = linking(
        relations, strategies={"rivers": ("model",), "Instruments": ("first",)}, ask={"component": "chat", "model": "m"}
    )
    linker = Linker(relations, search=Described(hits), settings=how, ask=ask)
    sets = [candidate_set(Query(str(at), "rivers"), (Candidate("Inn"), Candidate("Ill"))) for at in range(3)]
    links = [
        link for _, row in linker.links([*sets, replace(sets[0], query=Query("s", "instruments"))]) for link in row
    ]
    assert [(link.id, link.strategy) for link in links[:2]] == [("Q2", "model"), ("Q3", "first")]
    assert [link.id for link in links] == ["Q2", "Q3"] * 3 + ["Q1", "Q3"]
    assert rounds == [6]  # a batch's questions are put at once; of one hit, or of other relations, nothing is asked
    unasked = Linker(relations, search=Described(hits), settings=how)
    assert one(unasked, "Inn", "rivers").id == "Q1"


@given(st.lists(st.lists(st.text(max_size=8), max_size=4), max_size=6))
def test_sets_come_back_whole_and_in_order(relations: dict[str, Relation], texts: list[list[str]]) -> None:
    sets = [
        candidate_set(Query(str(at), "rivers"), tuple(Candidate(text, score=at) for text in row))
        for at, row in enumerate(texts)
    ]
    linked = list(Linker(relations, search=SearchTable({"a": "Q1"})).link(iter(sets)))
    assert [group.query for group in linked] == [group.query for group in sets]
    assert [[c.text for c in group.candidates] for group in linked] == texts


def test_the_first_hit_of_a_search_may_be_all_the_evidence(relations, examples) -> None:
    table = SearchTable({"Inn": "Q256020", "Voice": "Q1", "don river": "Q2", "Don": "Q3", "Don (x)": "", "Inns": ""})
    settings = linking(relations, evidence=("search",), typed=(), strategies={"instruments": ("first",)})
    alone = Linker(relations, search=table, settings=settings)
    assert one(alone, "Inn", "rivers").id == "Q256020"
    assert one(alone, "Voice", "instruments").id == "Q1"
    assert one(alone, "Don", "rivers").id == "Q3"
    assert [one(alone, text, "rivers").id for text in ("Inns", "Don (x)", "Innn")] == [None] * 3
    assert table.searched == {"inn", "voice", "don", "inns", "don (x)", "innn"}
    typed = Linker(relations, search=table, settings=linking(relations, evidence=("search",), typed=("rivers",)))
    assert [one(typed, text, "rivers").id for text in ("Don", "Inn", "Inns")] == ["Q2", "Q256020", None]


def test_a_relation_s_names_may_be_searched_for_in_a_phrase_and_known_by_a_word(relations) -> None:
    table = SearchTable({"Physics prize": "Q38104", "Physics": "Q413"})
    known = {"instruments": {"Peace": "Q35637", "medicine": "Q80061"}}
    table_of = {"component": "minimal23/words", "searched": {"instruments": "{{ object }} prize"}, "known": known}
    settings = linking(relations, **table_of)
    linker = Linker(relations, search=table, settings=settings)
    texts = ("Physics", "peace", "Physiology or Medicine in 1968", "{object}", "chess")
    assert [one(linker, text, "instruments").id for text in texts] == ["Q38104", "Q35637", "Q80061", None, None]
    assert one(linker, "Physics", "causes").id == "Q413"
    assert one(linker, "peace", "causes").id is None


def test_a_name_that_nothing_links_may_stay_in_its_id_s_place(relations) -> None:
    linker = Linker(relations, search=SearchTable({"Inn": "Q1"}), settings=linking(relations, unlinked="name"))
    given = candidate_set(Query("s", "rivers"), (Candidate("Inn"), Candidate(" Lech "), Candidate("x", id="Q7")))
    (linked,) = linker.link([given])
    assert [candidate.id for candidate in linked.candidates] == ["Q1", "Lech", "Q7"]


def test_the_head_of_a_title_is_searched_for_where_the_title_has_no_hit(relations) -> None:
    search = Described({"My Life": [Hit("Q1")], "Whole: Title": [Hit("Q2")]})
    plain = linking(relations, evidence=("search",), typed=(), strategies={"instruments": ("first",)})
    headed = replace(plain, evidence=("search", "head"))
    for settings, text, found in (
        (headed, "My Life: A", "Q1"),
        (plain, "My Life: A", None),
        (headed, "Whole: Title", "Q2"),
    ):
        assert one(Linker(relations, search=search, settings=settings), text, "instruments").id == found


PAGES = {
    "disambiguation": Hit("Q1", "Inn", classes=("Q4167410",)),
    "of persons": Hit("Q1", "Inn", classes=("Q22808320",)),
    "list": Hit("Q1", "Inn", classes=("Q13406463",)),
    "category": Hit("Q1", "Category:Inn", classes=("Q4167836",)),
    "template": Hit("Q1", "Inn", classes=("Q11266439",)),
    "duplicate": Hit("Q1", "Inn", classes=("Q17362920",)),
    "river and list": Hit("Q1", "Inn", classes=("Q4022", "Q13406463")),
    "by class tree": Hit("Q1", "Inn", classes=("Q99", "Q17442446")),
    "by description": Hit("Q1", "Inn", "Wikimedia disambiguation page"),
    "list by description": Hit("Q1", "Inn", "Wikimedia list article"),
}


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_no_name_means_a_page_of_a_wiki(relations, page: Hit) -> None:
    for relation in ("rivers", "instruments"):  # the first is strict, the second takes a hit of another class
        assert one(Linker(relations, search=Described({"Inn": [page]})), "Inn", relation).id is None
        behind = Described({"Inn": [page, Hit("Q2", "Inn", classes=("Q4022", "Q34379"))]})
        assert one(Linker(relations, search=behind), "Inn", relation).id == "Q2"


@pytest.mark.parametrize("name", ["Q101352", "Q202444", "Q12308941"])
def test_no_name_means_a_family_name_unless_one_is_wanted(relations, name: str) -> None:
    linker = Linker(relations, search=Described({"Bell": [Hit("Q1", "Bell", classes=(name,))]}))
    assert one(linker, "Bell", "instruments").id is None
    other = Described({"Bell": [Hit("Q1", "Bell", classes=(name,)), Hit("Q2", "Bell", classes=("Q9",))]})
    assert one(Linker(relations, search=other), "Bell", "instruments").id == "Q2"


def test_what_the_index_knows_of_a_page_counts_for_train_searches_and_ids(relations, examples, tmp_path) -> None:
    pages = {"Q14369": "Q4167410", "Q1653": "Q4167410", "Q7": "Q4167836"}
    lines = [json.dumps(item(qid, "Zed", classes=[kind])) for qid, kind in pages.items()]
    (tmp_path / "d.json").write_text("[\n" + ",\n".join(lines) + "\n]\n")
    build_index(tmp_path / "i", dump=tmp_path / "d.json")
    linker = Linker(
        relations, TrainObjects(examples, relations), AliasIndex(tmp_path / "i"), SearchTable({"isar": "Q7"})
    )
    for text in ("Inn", "Danuube", "Zed", "isar", "Q7"):
        assert one(linker, text, "rivers").id is None
    assert one(linker, "Q7", "rivers").strategy == "a page of a wiki, and no entity"
    assert one(linker, "Q8", "rivers").id == "Q8"


def test_a_real_thing_whose_description_names_wikimedia_is_linked(relations) -> None:
    for description in ("Wikimedia chapter in Germany", "free encyclopedia by Wikimedia", "river, see Wikimedia list"):
        hit = Hit("Q1", "Inn", description)
        assert one(Linker(relations, search=Described({"Inn": [hit]})), "Inn", "rivers").id == "Q1"


def test_an_exact_hit_goes_before_a_folded_one(relations, tmp_path) -> None:
    """Whatever the source: train, then an index, then a search with names, and one without."""
    rows = [Example(Query("Ufa", "rivers", "Q911"), (GoldObject(("Yahoo",), "Q1"), GoldObject(("Go",), "Q2")))]
    index = tmp_path / "i"
    (tmp_path / "t.csv").write_text("text,id,popularity\nYahoo!,Q11,1\nYahoo,Q12,99\nBrno,Q13,1\nBrn\u00f3,Q14,99\n")
    build_index(index, tables=[tmp_path / "t.csv"])
    named = Described(
        {"Go!": [Hit("Q22", "Go!", name="Go!"), Hit("Q2", "Go", name="Go")], "G\u00f3": [Hit("Q2", name="Go")]}
    )
    table = SearchTable({"Go!": "Q22", "C++": "Q2407"})
    for search in (named, table):
        linker = Linker(relations, TrainObjects(rows, relations), AliasIndex(index), search)
        assert one(linker, "Yahoo!", "rivers").id == "Q11"
        assert one(linker, "yahoo", "rivers").evidence == "relation"
        assert one(linker, "YAHOO.", "rivers").id == "Q1"
        assert (one(linker, "Go!", "rivers").id, one(linker, "Go!", "rivers").evidence) == ("Q22", "search")
        assert (one(linker, "G\u00f3", "rivers").id, one(linker, "G\u00f3", "rivers").evidence) == ("Q2", "relation")
        assert one(linker, "Brno", "rivers").id == "Q13"
        assert one(linker, "BRN\u00d3", "rivers").id == "Q14"
    assert one(Linker(relations, TrainObjects(rows, relations)), "Go!", "rivers").id == "Q2"


@pytest.mark.parametrize("text", ["C++", "C#", "C*", "C+"])
def test_a_name_with_a_sign_is_not_the_name_without(relations, tmp_path, text: str) -> None:
    (tmp_path / "t.csv").write_text("text,id\nC,Q15777\nDisney,Q7414\n")
    build_index(tmp_path / "i", tables=[tmp_path / "t.csv"])
    linker = Linker(relations, index=AliasIndex(tmp_path / "i"))
    assert one(linker, text, "rivers").id is None
    assert one(linker, "Disney+", "rivers").id is None
    linker.search = SearchTable({text: "Q2407"})
    assert one(linker, text, "rivers").id == "Q2407"
