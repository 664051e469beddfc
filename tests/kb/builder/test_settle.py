"""Settlement: no constraint is broken by what stays, the surer fact stays, and what goes is written down."""

import itertools
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from bases import SPACE, Base, answered, failed, tree
from command import Command
from hypothesis import given
from hypothesis import strategies as st
from opened import CUTOFF, recipe_of

from lmkbc.kb.builder.facts import Maker
from lmkbc.kb.builder.settle import Claim, NamedEntities, settled
from lmkbc.kb.builder.subjects import Classes
from lmkbc.testing import CandidateSet, Hit, Query

ONE_SUBJECT = "one subject"
SAME = "same fact"


STATES, AREA, DEATH = "CountryHasStates", "PersonHasNumberOfChildren", "PersonHasPlaceOfDeath"
RELATIONS = {relation.name: relation for name in (STATES, AREA, DEATH) for relation in [SPACE.relation(name)]}
IN_2023 = {name: SPACE.relation(name) for name in SPACE.edition("2023").relations}
CLAIMS = st.lists(
    st.builds(
        Claim, st.sampled_from([*RELATIONS]), st.integers(0, 3), st.sampled_from("abc"), st.floats(0, 1), st.booleans()
    ),
    max_size=12,
).map(lambda claims: [claim._replace(place=place) for place, claim in enumerate(claims)])


@given(CLAIMS, st.randoms())
def test_what_stays_contradicts_nothing_and_what_goes_is_no_surer(claims: list[Claim], random: Any) -> None:
    gone = {one: (why, kept) for one, why, kept in settled(claims, RELATIONS)}
    stay = [claim for claim in claims if claim not in gone]
    for one, other in itertools.combinations(stay, 2):
        assert not {*one.slots(RELATIONS[one.relation])} & {*other.slots(RELATIONS[other.relation])}
    for one, (why, kept) in gone.items():
        assert kept in stay
        assert kept.confidence >= one.confidence
        assert why in (SAME, "one object", ONE_SUBJECT)
    shuffled = random.sample(claims, len(claims))
    assert {one for one, *_ in settled(shuffled, RELATIONS)} == {*gone}


SUBJECTS = "name,id\nChad,Q1\nMali,Q2\nRepublic of Mali,Q3\nLand 4,\nFourth Land,Q4\n"
SURE = {"Chad": 0.5, "Mali": 0.9, "Republic of Mali": 0.7, "Land 4": 0.8, "Fourth Land": 0.6}


def answer(query: Query) -> CandidateSet:
    """Name the same state for each country, sure as above, and another area for each."""
    p = SURE[query.subject]
    if query.relation == "CountryBordersCountry":
        return answered(query, ("Land 4", "Q4", p))
    if query.relation == AREA:
        return answered(query, (str(int(p * 10)), None, p))
    more = {"Mali": [("Kidal", None, p), ("KIDAL!", None, 0.8)], "Fourth Land": []}
    return answered(query, ("Kayes", "Q99", p), *more.get(query.subject, [("Kidal", None, p)]))


@pytest.fixture
def base(tmp_path: Path, data_dir: Path) -> Base:
    made = Base(tmp_path, [], "2023", 2, data_dir)
    made.file.write_text(SUBJECTS)
    return made


ASKED = ("CountryBordersCountry", STATES, AREA)


def test_the_surest_subject_keeps_an_object_and_an_entity_one_value(
    base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = base.build(monkeypatch, answer, ASKED)
    facts = pl.read_parquet(base.out / "facts" / "**" / "*.parquet")
    states = facts.filter(pl.col("object_id") == "Q99")
    assert states.select("subject", "confidence").rows() == [("Mali", 0.9)]
    assert facts.filter(object="Kidal")["subject"].to_list() == ["Chad", "Mali", "Republic of Mali", "Land 4"]
    children = facts.filter(pl.col("literal").is_not_null())
    assert children.select("subject", "literal", "precision").rows()[-1] == ("Fourth Land", "6", "1")
    removed = pl.read_parquet(base.out / "removed")
    assert removed.filter(subject="Chad").select("object", "reason", "kept_row", "kept").rows() == [
        ("Kayes", ONE_SUBJECT, 1, "Kayes")
    ]
    assert removed["reason"].value_counts().sort("reason").rows() == [(ONE_SUBJECT, 4), (SAME, 1)]
    assert made["removed"] == {ONE_SUBJECT: 4, SAME: 1}
    nothing = pl.read_parquet(base.out / "nothing").select("subject", "relation", "reason").rows()
    assert nothing == [("Fourth Land", "country-states", "removed")]
    assert made["counts"] == {
        "subjects": 5,
        "queries": 15,
        "facts": 15,
        "linked": 6,
        "stated_by_labels": 0,
        "quoted": 0,
        "nothing": 1,
        "failed": 0,
        "below_least": 0,
    }
    assert len(facts) + len(removed) == 20
    merged = facts.filter(subject="Mali", object="Kidal")
    assert merged["more_sources"].to_list() == [["model"]]


def test_entities_have_the_names_and_votes_of_all_their_mentions(base: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    base.build(monkeypatch, answer, ASKED)
    entities = pl.read_parquet(base.out / "entities")
    assert entities["entity"].to_list() == [*range(len(entities))]
    land = entities.row(by_predicate=pl.col("id") == "Q4", named=True)
    assert ({*land["names"]}, land["as_subject"], land["as_object"]) == ({"Land 4", "Fourth Land"}, 3, 5)
    assert land["class"] == "Q6256"
    assert {vote["class"] for vote in land["votes"]} == {"Q6256", "Q5"}
    facts = pl.read_parquet(base.out / "facts" / "**" / "*.parquet")
    assert facts.filter(object_id="Q4")["object_entity"].unique().to_list() == [land["entity"]]
    assert facts.filter(pl.col("literal").is_not_null())["object_entity"].null_count() == 5


def test_a_base_keeps_the_surest_object_of_a_functional_relation(base: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    def two(query: Query) -> CandidateSet:
        return answered(query, ("Paris", "Q90", 0.6), ("Rome", "Q220", 0.8))

    base.build(monkeypatch, two, [DEATH, ASKED[0]])
    facts = pl.read_parquet(base.out / "facts" / "**" / "*.parquet").filter(subject="Chad")
    assert sorted(facts.select("property", "object").rows()) == [("P20", "Rome"), ("P47", "Paris"), ("P47", "Rome")]


def test_a_run_without_tuned_rules_keeps_all_objects_of_a_functional_relation(command: Command) -> None:
    query = next(query for query in SPACE.queries(SPACE.edition("mini"), "val") if query.relation == DEATH)
    row = {"SubjectEntity": query.subject, "Relation": DEATH, "completions": ['["Paris", "Rome"]']}
    Path("said.jsonl").write_text(json.dumps(row))
    Path("search.json").write_text('{"Paris": "Q90", "Rome": "Q220"}')
    words = "--edition mini --split val --relation place-of-death --untuned --failed-as-empty --offline --no-report"
    command.done("predict", "--from", "said.jsonl", "--search-table", "search.json", *words.split(), "--out", "run")
    rows = map(json.loads, Path("run/predictions.jsonl").read_text().splitlines())
    (objects,) = [row["ObjectEntitiesID"] for row in rows if row["SubjectEntity"] == query.subject]
    assert objects == ["Q90", "Q220"]


class Aliases:
    """An index that has aliases of two things, one of which the base does not name."""

    def __init__(self, known: dict[str, tuple[str, ...]]) -> None:
        self.known = known

    def exact(self, text: str) -> tuple[Hit, ...]:
        return tuple(Hit(qid, "", "", (), 0, text) for qid in self.known.get(text.lower(), ()))


def test_a_name_is_the_one_entity_of_the_base_that_has_it(base: Base) -> None:
    named = {"chad": "Q1", "Mali": "Q2", "CHAD": None, "swahililand": None, "two": None, "unknown": None, "Niger": "Q3"}
    subjects = [Query(name, ASKED[0], qid) for name, qid in [*named.items(), ("niger", "Q4"), ("Niger", None)]]
    maker = Maker(recipe_of({"component": "prior"}, select=CUTOFF).select, IN_2023, "run")
    facts = maker.tables([*range(9)], [answered(one, ("Togo", None, 0.9)) for one in subjects]).facts
    classes = Classes({}, SPACE.relations.values(), SPACE.classes)
    relations = {"country-borders": SPACE.relation("country-borders")}

    def numbers(index: Any) -> list[int]:
        return NamedEntities([facts], relations, classes, index).tagged(facts)["subject_entity"].to_list()

    assert numbers(None) == [0, 1, 0, 2, 3, 4, 5, 6, 7]
    aliases = Aliases({"swahililand": ("Q1", "Q7"), "two": ("Q1", "Q2"), "unknown": ("Q8",)})
    assert numbers(aliases) == [0, 1, 0, 0, 2, 3, 4, 5, 6]


def test_what_is_listed_separately_stays_separate(base: Base) -> None:
    listed = [("Evolut PRO", None), ("Evolut PRO+", None), ("Evolut PRO +", None), ("Yahoo", "Q1"), ("Paris", None)]
    listed += [("Paris", "Q90"), ("Mercury", None), ("Mercury", None)]
    objects = ["Evolut Pro+", "Evolut PRO.", "YAHOO", "Yahoo!", "Paris", "Mercury", "Swahililand", "Q1's"]
    queries = [Query(name, ASKED[0], qid) for name, qid in listed]
    sets = [answered(one, (text, None, 0.9)) for one, text in zip(queries, objects, strict=True)]
    maker = Maker(recipe_of({"component": "prior"}, select=CUTOFF).select, IN_2023, "run")
    facts = maker.tables([*range(len(listed))], sets).facts
    classes = Classes({}, SPACE.relations.values(), SPACE.classes)
    relations = {"country-borders": SPACE.relation("country-borders")}
    index: Any = Aliases({"swahililand": ("Q1",)})
    tagged = NamedEntities([facts], relations, classes, index, len(listed)).tagged(facts)
    assert tagged["subject_entity"].to_list() == [*range(8)]
    of_object = dict(zip(objects, tagged["object_entity"], strict=True))
    assert [of_object[name] for name in ("Evolut Pro+", "YAHOO", "Paris", "Swahililand")] == [1, 3, 4, 3]
    assert min(of_object[name] for name in ("Evolut PRO.", "Yahoo!", "Mercury", "Q1's")) > 7


def test_a_list_of_names_that_differ_by_signs_makes_an_entity_of_each(command: Command) -> None:
    names = ["C", "C++", "C#", "A*", "A", "+/-", "!!!"]
    Path("s.csv").write_text("name,class\n" + "".join(f"{name},country\n" for name in names))
    rows = [{"SubjectEntity": name, "Relation": "CountryBordersCountry", "model": "m"} for name in names]
    texts = [json.dumps(row | {"completions": ["Chad" if at == 1 else "Chad, C++"]}) for at, row in enumerate(rows)]
    Path("answers.jsonl").write_text("\n".join(texts) + "\n")
    build = ["build", "--edition", "mini", "--from", "answers.jsonl", "--out", "kb", "--subjects", "s.csv"]
    command.done(*build, "--relation", "country-borders", "--untuned", "--least", "0")
    facts = pl.read_parquet("kb/facts/**/*.parquet")
    assert facts["subject"].unique(maintain_order=True).to_list() == names
    assert facts["subject_entity"].unique(maintain_order=True).to_list() == [*range(len(names))]
    assert set(facts.filter(object="C++")["object_entity"]) == {1}


def test_failed_it_is_settled_anew_and_alike(base: Base, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base.build(monkeypatch, answer, ASKED)
    whole = tree(base.out)
    base.out = tmp_path / "again"
    base.build(monkeypatch, lambda query: failed(query) if query.subject == "Mali" else answer(query), ASKED)
    states = pl.read_parquet(base.out / "facts" / "**" / "*.parquet").filter(object_id="Q99")
    assert states["subject"].to_list() == ["Land 4"], "the surest of those that answered"
    base.asked.clear()
    base.build(monkeypatch, answer, ASKED)
    assert tree(base.out) == whole
    assert len(base.asked) < 15


def test_nobody_declares_what_cannot_hold() -> None:
    from dataclasses import replace

    for name in ("country-borders", "area"):
        with pytest.raises(ValueError, match="distinct_values is given"):
            replace(SPACE.relation(name), distinct_values=True)
