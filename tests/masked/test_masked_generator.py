"""The generator from queries to candidates: ensembles, vocabularies, corrections, pre-conditions, and the recipes."""

import json
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from opened import generators, part, recipe_of
from small import small_edition
from space import SPACE
from tiny_families import probabilities
from tiny_masked import save

from lmkbc import AliasScorer, EntityType, InputError, Metric, Precondition, Relation, Shape
from lmkbc.files.places import RecordedFile
from lmkbc.generate.recorded import Recorded
from lmkbc.masked.candidates import ClozeAnswers, origins_of
from lmkbc.masked.masked import MaskedGenerator
from lmkbc.masked.preconditions import rewritten
from lmkbc.masked.vocabulary import Words
from lmkbc.testing import Candidate, CandidateSet, Example, GoldObject, Query, Run
from tests.candidates import proposals, sources

CAPITAL = Relation(
    name="capital",
    names=("CountryCapital",),
    property="P36",
    subject_type=EntityType("country", "Q6256"),
    object_type=EntityType("capital", "Q5119"),
    kind="entity",
    may_be_empty=False,
    definition="The capital.",
    clozes=("the capital of {subject} is {mask}.", "{mask} is the capital of {subject}."),
    question="What is the capital of {subject}?",
    triple="has the capital",
    statement="The capital of {subject} is {object}.",
    shape=Shape(stop=frozenset({"the", "of"})),
)
KNOWN = dict.fromkeys(("capital", "CountryCapital"), CAPITAL)
EDITION = small_edition(["CountryCapital"], metric=Metric(AliasScorer(), average="relation"))
ITALY, PERU, NORWAY = (Query(name, "CountryCapital") for name in ("Italy", "Peru", "Norway"))
TRAIN = [
    Example(ITALY, (GoldObject(("Rome",)),)),
    Example(PERU, (GoldObject(("Lima",)), GoldObject(("New Guinea",)))),
    Example(Query("France", "CountryCapital"), (GoldObject(("Paris",)), GoldObject(("Lima",)))),
]


def run(
    backbone: Any, queries: Sequence[Query] = (NORWAY,), relation: Relation = CAPITAL, **settings: Any
) -> list[CandidateSet]:
    probe = part("probe", KNOWN, **settings)
    generator = MaskedGenerator(backbone, EDITION, {"CountryCapital": relation}, TRAIN, probe)
    return list(generator.generate(queries))


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"top_k": 3, "ensemble": "max"},
        {"min_prob": 0.004, "ensemble": "count"},
        {"clean": False, "top_k": {"*": 5}, "min_prob": {"CountryCapital": 0.003}},
        {"component": "li22/probe", "null": "Rome"},
        {"component": "ning22/probe", "variants": {"CountryCapital": {"of": "Rome"}}, "clozes": 1},
    ],
    ids=str,
)
def test_recorded_scores_are_read_as_those_of_the_model(
    settings: dict[str, Any], backbone: Any, tmp_path: Path
) -> None:
    queries = (NORWAY, PERU)
    rows = []
    for query in queries:
        scored = []
        for place, cloze in enumerate(CAPITAL.clozes[: settings.get("clozes", 2)]):
            raw = {"clozes": {"*": [cloze]}, "clean": False, "top_k": 10**6}
            (found,) = run(backbone, (query,), **raw)
            scored += [{"object": one.text, "score": one.score, "source": str(place)} for one in found.candidates]
        null = [{**one, "object": ""} for one in scored if one["object"] == settings.get("null")]
        scored = [one for one in scored if one["object"] != settings.get("null")] + null
        rows.append({"SubjectEntity": query.subject, "Relation": query.relation, "candidates": scored})
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    relations = {"CountryCapital": replace(CAPITAL, may_be_empty=True)}
    probe = part("probe", KNOWN, **settings)
    answers = ClozeAnswers(probe, EDITION, relations, origins_of(TRAIN, EDITION))
    recorded = list(Recorded([RecordedFile(path)], EDITION, relations, score=answers.of_row).generate(queries))
    live = run(backbone, queries, relations["CountryCapital"], **settings)
    for one, other in zip(recorded, live, strict=True):
        assert one.query == other.query
        assert scores(one) == pytest.approx(scores(other), abs=1e-6)
        assert scores(other), settings


def test_a_recorded_object_keeps_its_id_and_verification_score_and_a_veto_counts(tmp_path: Path) -> None:
    rome = {"object": "Rome", "id": "Q220", "score": 0.5, "verification": 0.8}
    scored = [rome, {"object": "the", "score": 0.9}, {"object": "", "score": 0.4, "source": "veto"}]
    path = tmp_path / "answers.jsonl"
    path.write_text(json.dumps({"SubjectEntity": "Norway", "Relation": "CountryCapital", "candidates": scored}))
    relations = {"CountryCapital": CAPITAL}
    probe = part("probe", KNOWN)
    answers = ClozeAnswers(probe, EDITION, relations, origins_of(TRAIN, EDITION))
    (found,) = Recorded(
        [RecordedFile(path)], replace(EDITION, target="id", column="ObjectEntitiesID"), relations, score=answers.of_row
    ).generate([NORWAY])
    assert [(one.text, one.id, one.verification) for one in found.candidates] == [("Rome", "Q220", 0.8)]
    assert scores(found) == pytest.approx({"Rome": 0.3, "": 0.4})


def scores(found: CandidateSet) -> dict[str, float]:
    return {one.text if isinstance(one, Candidate) else "": one.score for one in proposals(found)}


def test_scores_are_the_probabilities_of_words(backbone: Any) -> None:
    (found,) = run(backbone, clozes=1, clean=False, top_k=10)
    wanted = probabilities(backbone, "the capital of Norway is [MASK].")
    plain = Words(backbone.tokenizer).plain
    best = sorted(plain, key=lambda index: -float(wanted[index]))[:10]
    assert scores(found) == pytest.approx({plain[index]: float(wanted[index]) for index in best}, rel=1e-4)
    assert {candidate.sources for candidate in found.candidates} == {sources(f"{Path(backbone.name).name}#0")}


def test_a_list_is_a_vocabulary(backbone: Any) -> None:
    names = ["Rome", "Oslo", "New Guinea"]
    wanted = probabilities(backbone, "the capital of Norway is [MASK].")
    index = {name: Words(backbone.tokenizer).single(name) for name in names[:2]}
    (whole,) = run(backbone, clozes=1, vocabulary=names)
    assert scores(whole) == pytest.approx({name: float(wanted[i]) for name, i in index.items()}, rel=1e-4)


def test_train_objects_of_the_query_itself_are_not_proposed(backbone: Any) -> None:
    norway, italy, peru = run(backbone, [NORWAY, ITALY, PERU], vocabulary="train", component="yang23/probe")
    assert scores(norway).keys() == {"Rome", "Lima", "New Guinea", "Paris"}
    assert scores(italy).keys() == {"Lima", "New Guinea", "Paris"}
    assert scores(peru).keys() == {"Rome", "Lima", "Paris"}


def test_a_vocabulary_that_holds_nothing_is_refused(backbone: Any) -> None:
    with pytest.raises(InputError, match="nothing is left to propose"):
        run(backbone, vocabulary=["Papua New Guinea"])


def test_min_prob_and_top_k_bound_the_answers(backbone: Any) -> None:
    everything = scores(run(backbone, clozes=1, clean=False)[0])
    least = sorted(everything.values())[-3]
    (few,) = run(backbone, clozes=1, clean=False, min_prob={"CountryCapital": least})
    assert len(few.candidates) == 2
    assert len(run(backbone, clozes=1, clean=False, top_k={"CountryCapital": 4})[0].candidates) == 4


def test_cleaning_drops_stop_words_and_the_subject_and_rescales(backbone: Any) -> None:
    raw = scores(run(backbone, clozes=1, clean=False, top_k=300)[0])
    kept = scores(run(backbone, clozes=1, top_k=300)[0])
    assert {"the", "of", "norway"} <= raw.keys()
    assert not {"the", "of", "norway"} & kept.keys()
    rescaled = scores(run(backbone, clozes=1, top_k=300, component="li22/probe")[0])
    assert sum(rescaled.values()) == pytest.approx(sum(raw.values()), rel=1e-3)


DEAD = Precondition(cloze="{subject} is {mask}.", answers=("dead", "alive"), vetoes=frozenset({"alive"}))
KIND = Precondition(
    cloze="{subject} is a {mask}.",
    answers=("state", "city"),
    clozes=("the {answer} {subject} borders the {answer} {mask}.",),
)


def test_a_veto_scales_all_scores_and_proposes_nothing(backbone: Any) -> None:
    (plain,) = run(backbone, top_k=5)
    (found,) = run(backbone, relation=replace(CAPITAL, preconditions=(DEAD,)), preconditions=True, top_k=5)
    asked = probabilities(backbone, "Norway is [MASK].")
    alive, dead = (float(asked[Words(backbone.tokenizer).single(word)]) for word in ("alive", "dead"))
    vetoed = scores(found).pop("")
    assert vetoed == pytest.approx(alive / (alive + dead), rel=1e-4)
    for text, score in scores(plain).items():
        assert scores(found)[text] == pytest.approx(score * (1 - vetoed), rel=1e-4)


def test_a_name_of_a_type_rewrites_the_cloze_of_each_subject(backbone: Any) -> None:
    """The names are train's: its subjects are the countries of this edition."""
    slot = {
        "component": "fang22/precondition",
        "cloze": "{subject} is in {mask}.",
        "type": "Q6256",
        "top_k": 10_000,
        "clozes": ["the capital of {answer} is {mask}, not {subject}."],
    }
    (found,) = run(backbone, clean=False, vocabulary=["Rome"], preconditions={"*": [slot]})
    asked = probabilities(backbone, "Norway is in [MASK].")
    name = max(("Italy", "Peru", "France"), key=lambda one: float(asked[Words(backbone.tokenizer).single(one)]))
    wanted = probabilities(backbone, f"the capital of {name} is [MASK], not Norway.")
    assert scores(found)["Rome"] == pytest.approx(float(wanted[Words(backbone.tokenizer).single("Rome")]), rel=1e-4)


def test_more_clozes_than_a_module_has_are_paraphrases(backbone: Any) -> None:
    relation = replace(CAPITAL, paraphrases=("{subject} has the capital {mask}.", "{mask} governs {subject}."))
    for count, asked in ((0, 2), (1, 1), (3, 3), (9, 4)):
        (found,) = run(backbone, relation=relation, clozes={"*": count}, vocabulary=["Rome"])
        assert len(found.candidates[0].sources) == asked


def test_the_word_for_nothing_is_proposed_where_there_may_be_nothing(backbone: Any) -> None:
    settings: dict[str, Any] = {"component": "yang23/probe", "null": "no object", "vocabulary": "train"}
    assert "" not in scores(run(backbone, **settings)[0])
    (found,) = run(backbone, relation=replace(CAPITAL, may_be_empty=True), **settings)
    assert scores(found).keys() == {"", "Rome", "Lima", "New Guinea", "Paris"}


def test_words_of_the_name_are_asked_too(backbone: Any) -> None:
    """Each answer has the best score that the name or any of its words gives it; one that is named has at least 0.7."""
    relation = replace(CAPITAL, clozes=CAPITAL.clozes[:1], shape=Shape(closed={"Rome": (), "Lima": (), "Oslo": ()}))
    settings: dict[str, Any] = {"relation": relation, "component": "fang22/probe", "stems": {"*": 3}, "top_k": 1000}
    query = Query("Peru limax", "CountryCapital")
    (found,) = run(backbone, [query], name_words={"CountryCapital": 0.7}, **settings)
    each = [
        scores(run(backbone, [Query(name, "CountryCapital")], **settings)[0])
        for name in ("Peru limax", "Peru", "limax")
    ]
    best = {name: max(one.get(name, 0.0) for one in each) for name in ("Rome", "Lima", "Oslo")}
    assert scores(found) == pytest.approx(best | {"Lima": max(best["Lima"], 0.7)}, rel=1e-4)
    assert [one.text for one in found.candidates] == sorted(
        filter(None, scores(found)), key=lambda name: -scores(found)[name]
    )
    assert any(source.draw == "name" for one in found.candidates if one.text == "Lima" for source in one.sources)


def test_a_neutral_subject_calibrates(backbone: Any) -> None:
    relation = replace(CAPITAL, preconditions=(replace(DEAD, neutral="Norway"),))
    (found,) = run(backbone, relation=relation, preconditions=True)
    assert scores(found)[""] == pytest.approx(0.5, rel=1e-4)


def test_an_answer_rewrites_the_cloze(backbone: Any) -> None:
    relation = replace(CAPITAL, preconditions=(KIND,))
    (found,) = run(backbone, relation=relation, preconditions=True, clean=False, vocabulary=["Rome"])
    asked = probabilities(backbone, "Norway is a [MASK].")
    state, city = (float(asked[Words(backbone.tokenizer).single(word)]) for word in ("state", "city"))
    word = "state" if state > city else "city"
    wanted = probabilities(backbone, f"the {word} Norway borders the {word} [MASK].")
    assert scores(found)["Rome"] == pytest.approx(float(wanted[Words(backbone.tokenizer).single("Rome")]), rel=1e-4)
    assert rewritten(KIND, "Oslo City", {"state": 0.9, "city": 0.1}) == ("the city {subject} borders the city {mask}.",)


def test_an_answer_of_several_tokens_is_refused(backbone: Any) -> None:
    relation = replace(CAPITAL, preconditions=(replace(DEAD, answers=("alive", "zebra")),))
    with pytest.raises(InputError, match="'zebra', which is not one token"):
        run(backbone, relation=relation, preconditions=True)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"topk": 3}, "did you mean 'top_k'"),
        ({"ensemble": "men"}, "did you mean 'mean'"),
        ({"min_prob": {"CountryCapitol": 0.1}}, "did you mean 'CountryCapital'"),
        ({"clozes": {"CountryCapital": ["{subject} only"]}}, "each exactly once"),
        ({"top_k": 0}, r"probe: top_k is 0: give a whole number of at least 1"),
        ({"top_k": {"CountryCapital": -1}}, r"probe: top_k is -1"),
        ({"top_k": "ten"}, "'probe.top_k' is 'ten': give a whole number or a table"),
        ({"clozes": -1}, r"probe: clozes is -1"),
        ({"component": "fang22/probe", "name_words": {"CountryCapital": 2}}, "from 0 to 1"),
        ({"null": "zebra"}, "'zebra', which is not one token"),
        ({"soft_prompts": True}, "are always asked"),
        ({"clozes": {"*": ["{subject} is {mask} or {mask}."]}}, "each exactly once"),
    ],
)
def test_wrong_settings_are_refused(backbone: Any, settings: dict[str, Any], reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        run(backbone, **settings)


def test_a_cut_subject_is_remarked(backbone: Any) -> None:
    generator = MaskedGenerator(backbone, EDITION, {"CountryCapital": CAPITAL}, TRAIN, part("probe", KNOWN, clozes=1))
    list(generator.generate([Query("rome " * 600, "CountryCapital")]))
    assert generator.notes.remarks == [f"1 clozes were cut to the longest input of {Path(backbone.name).name}"]


def test_a_relation_without_a_known_object_is_remarked(backbone: Any) -> None:
    train = [Example(ITALY, (GoldObject(("東京",)),))]
    probe = part("probe", KNOWN, vocabulary="train")
    generator = MaskedGenerator(backbone, EDITION, {"CountryCapital": CAPITAL}, train, probe)
    assert [found.candidates for found in generator.generate([NORWAY, PERU])] == [(), ()]
    assert generator.notes.remarks[0].startswith("no train object of CountryCapital is in")


def test_of_listed_names_those_of_one_token_are_asked_for(backbone: Any) -> None:
    (found,) = run(backbone, vocabulary=["Papua New Guinea", "Rome", "東京"], top_k=99)
    assert {one.text for one in found.candidates} == {"Rome"}


@pytest.mark.parametrize("query", [NORWAY, PERU])
def test_ensembles(backbone: Any, query: Query) -> None:
    whole: dict[str, Any] = {"clean": False, "top_k": 5}
    exact = replace(backbone, model=deepcopy(backbone.model).double())  # a cloze reads the same alone and beside others

    def scored(**settings: Any) -> dict[str, float]:
        (found,) = run(exact, (query,), **whole, **settings)
        return {one.text: one.score for one in found.candidates}

    proposals = [scored(clozes={"*": [cloze]}) for cloze in CAPITAL.clozes]
    mean, most, count = (scored(clozes={"*": [*CAPITAL.clozes]}, ensemble=how) for how in ("mean", "max", "count"))
    names = {name for each in proposals for name in each}
    assert {*mean} == {*most} == {*count} == names
    sources = {name: sum(name in each for each in proposals) for name in names}
    assert {*sources.values()} == {1, 2}, "some are named by both clozes, and some by one"
    for name in names:
        said = [each[name] for each in proposals if name in each]
        assert mean[name] == pytest.approx(sum(said) / len(proposals))
        assert most[name] == pytest.approx(max(said))
        assert 0 < count[name] <= 1
    order = [(sources[name], most[name]) for name in count]
    assert order == sorted(order, reverse=True)
    assert list(mean.values()) == sorted(mean.values(), reverse=True)


def test_a_model_must_be_named(tmp_path: Path) -> None:
    system = recipe_of({"component": "masked"})
    with pytest.raises(InputError, match="for CompanyHasParentOrganisation: name one with --model"):
        list(generators(Run(workspace=SPACE, edition=SPACE.edition("mini")), system))


def test_relations_have_models_of_their_own(tmp_path: Path) -> None:
    one, other = (str(save(tmp_path / name, ("piano",), seed)) for seed, name in enumerate(("one", "other")))
    plays, dies = Query("Ada", "PersonPlaysInstrument"), Query("Ada", "PersonHasPlaceOfDeath")
    table = {"component": "masked", "probe": {"clean": False, "top_k": 1}}

    def asked(named: Any, **given: Any) -> dict[str, list[tuple[str, float]]]:
        """Return what each relation's model answers, by the model's name."""
        system = recipe_of(table | {"model": named})
        ((_, generator),) = generators(Run(workspace=SPACE, edition=SPACE.edition("mini"), **given), system)
        found = {made.query: made.candidates for made in generator.generate([dies, plays])}
        assert len(found) == 2
        return {
            f"{query.relation} {c.sources[0].model}": [(c.text, round(c.score, 5))]
            for query in found
            for c in found[query]
        }

    alone = asked(one) | asked(other)
    assert asked({"*": one, "instrument": other}) == {
        name: alone[name] for name in (f"{dies.relation} one", f"{plays.relation} other")
    }
    assert asked({"*": one, "instrument": other}, model=other) == asked(other)
    with pytest.raises(InputError, match="model names 'instruments', which is no relation"):
        asked({"instruments": other})
