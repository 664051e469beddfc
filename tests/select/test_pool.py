"""Pooling: what a score is, what merges, and that neither order nor failures matter."""

import gzip
import json
import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from opened import part
from space import SPACE

from lmkbc import Edition, InputError
from lmkbc.run.submission import candidate_lines
from lmkbc.select.pool import Merging, Pool
from lmkbc.testing import Candidate, CandidateSet, Nil, Query, Source, State
from tests.candidates import candidate_set, sources
from tests.small import small_relation

EDITIONS = SPACE.editions
STRINGS, IDS = EDITIONS["2026"], EDITIONS["2023"]
QUERY = Query("Some Subject", "awardWonBy")


def pool(edition: Edition, settings: Mapping[str, Any]) -> Pool:
    return Pool(edition, part("pool", **settings))


def draws(model: str, *answers: list[str] | State, query: Query = QUERY) -> CandidateSet:
    """Sampled answers: a list of names, [] for an abstention, a state for a failure."""
    candidates, states = [], []
    for index, answer in enumerate(answers):
        source = (Source(model, str(index)),)
        if isinstance(answer, State):
            states.append(answer)
            continue
        states.append(State.ANSWERED if answer else State.ABSTAINED)
        candidates += [Candidate(name, 1.0, source) for name in answer] or [Nil(1.0, source)]
    return candidate_set(query, tuple(candidates), tuple(states))


def scored(model: str, query: Query = QUERY, **scores: float) -> CandidateSet:
    return candidate_set(query, tuple(Candidate(name, score, sources(model)) for name, score in scores.items()))


def rows(merged: CandidateSet) -> list[dict[str, Any]]:
    """Return what a file holds of a set: nothing where it failed."""
    lines = gzip.decompress(candidate_lines([merged])).splitlines()
    return [row for line in lines for row in json.loads(line)["candidates"]]


def pooled(*sets: CandidateSet, edition: Edition = STRINGS, **settings: object) -> dict[str, float]:
    (merged,) = pool(edition, settings).merge([[one] for one in sets])
    return {row["object"]: row["score"] for row in rows(merged)}


READ_OF_FIVE = [draws("m", ["Ann", "Bo"], ["Ann"], [], State.UNPARSED, State.TRUNCATED)]
VOTES = draws("m", ["Ann"], ["Ann"], ["Ann"]), draws("n", ["Bo"])
CLEANED = replace(draws("m", ["Ann"], ["Ann"]), draws=(State.ANSWERED,) * 4)
ZOLA = draws("m", ["Émile Zola"], ["emile zola"], ["Émile Zola"])


@pytest.mark.parametrize(
    ("sets", "settings", "shares"),
    [
        # votes are shares of the answers, unless shares are of all replies
        (READ_OF_FIVE, {}, {"Ann": 0.666667, "Bo": 0.333333, "": 0.333333}),
        (READ_OF_FIVE, {"of": "replies"}, {"Ann": 0.4, "Bo": 0.2, "": 0.2}),
        ([draws("m", ["Ann"], State.MISSING)], {}, {"Ann": 1.0}),  # a failed call is no reply
        # the score is the mean over models
        ([scored("m", Ann=0.8, Bo=0.1), scored("n", Ann=0.4, Cy=0.5)], {}, {"Ann": 0.6, "Cy": 0.25, "Bo": 0.05}),
        ([CLEANED], {}, {"Ann": 0.5}),  # an answer that was cleaned away still counts as a source
        (VOTES, {}, {"Ann": 0.5, "Bo": 0.5}),
        (VOTES, {"per": "draw"}, {"Ann": 0.75, "Bo": 0.25}),
        (VOTES, {"weights": {"n": 3}}, {"Bo": 0.75, "Ann": 0.25}),
        ([draws("m", ["Ann"])], {"weights": {"m": 0}}, {"Ann": 0.0}),
        ([draws("m", ["Ann"]), draws("n", State.UNPARSED)], {}, {"Ann": 1.0}),
        ([ZOLA], {}, {"Émile Zola": 1.0}),  # equal objects merge under the edition's normalisation
        ([ZOLA], {"edition": EDITIONS["2025"]}, {"Émile Zola": 0.666667, "emile zola": 0.333333}),
        ([draws("m", ["1250"], ["1,250"], ["1250.0"], ["1250"])], {}, {"1250": 1.0}),  # numbers merge by value
    ],
)
def test_what_a_pooled_score_is(sets: list[CandidateSet], settings: dict[str, Any], shares: dict[str, float]) -> None:
    assert pooled(*sets, **settings) == shares


def test_no_rounding_makes_an_object_surer_than_sure() -> None:
    named = [[draws(model, ["Ann"])] for model in "mno"]
    (merged,) = pool(STRINGS, {"weights": {"n": 3, "o": 0.1}}).merge(named)
    assert merged.candidates[0].score == 1.0


def test_where_all_failed_the_query_has_failed() -> None:
    (merged,) = Pool(edition=STRINGS).merge([[draws("m", State.MISSING)], [draws("n", State.UNPARSED)]])
    assert merged.failed
    assert merged.candidates == ()


def test_linked_objects_merge_by_id() -> None:
    candidates = (
        Candidate("USA", 1.0, sources("m#0"), "Q30"),
        Candidate("United States", 1.0, sources("m#1"), "Q30"),
        Candidate("Georgia", 1.0, sources("m#0"), "Q230"),
        Candidate("Georgia", 1.0, sources("m#1"), "Q1428"),
    )
    one = candidate_set(QUERY, candidates, (State.ANSWERED, State.ANSWERED))
    (merged,) = Pool(edition=IDS).merge([[one]])
    assert [(c.id, c.score) for c in merged.candidates] == [("Q30", 1.0), ("Q1428", 0.5), ("Q230", 0.5)]
    assert merged.candidates[0].sources == sources("m#0", "m#1")


def test_identifiers_merge_only_as_they_are_written() -> None:
    relations = {QUERY.relation: small_relation(kind="identifier")}
    (merged,) = Pool(STRINGS, relations=relations).merge([[draws("m", ["007"], ["7"], ["007"])]])
    assert [one.text for one in merged.candidates] == ["007", "7"]


def test_short_texts_merge_if_they_are_scored_alike() -> None:
    relations = {QUERY.relation: small_relation(kind="strings")}
    (merged,) = Pool(STRINGS, relations=relations).merge([[draws("m", ["Red"], ["red."], ["Red"])]])
    assert [(one.text, one.score) for one in merged.candidates] == [("Red", 1.0)]


@pytest.mark.parametrize(
    ("kind", "drawn", "merged"),
    [
        ("date", ["1899", "1899-05", "1901"], {"1899-05": 2, "1901": 1}),
        ("date", ["1899", "1899-05", "1899-05-12", "1890s"], {"1899-05-12": 4}),
        ("date", ["1899", "1899-05", "1899-06"], {"1899": 1, "1899-05": 1, "1899-06": 1}),
        ("date", ["c. 1899", "1899", "c. 1898"], {"1899": 2, "c. 1898": 1}),
        ("date", ["c. 1899", "1899", "1899-05"], {"1899-05": 3}),
        ("date", ["c. 1899", "1899-05", "1899-06"], {"c. 1899": 1, "1899-05": 1, "1899-06": 1}),
        ("number", ["22.2", "22.222222", "23"], {"22.222222": 2, "23": 1}),
        ("number", ["22.2", "22.21111", "22.22222"], {"22.2": 1, "22.21111": 1, "22.22222": 1}),
        ("number", ["22", "22.2", "22.3"], {"22": 1, "22.2": 1, "22.3": 1}),
        ("number", ["1284.5", "1284.51", "1284.9"], {"1284.5": 1, "1284.51": 1, "1284.9": 1}),
        ("entity", ["Der Freistaat Sachsen", "Freistaat Sachsen", "Bayern"], {"Freistaat Sachsen": 2, "Bayern": 1}),
        ("entity", ["die Stadt Goslar", "Stadt Goslar"], {"Stadt Goslar": 2}),
        ("entity", ["The De Bilt", "Bilt", "De Bilt", "L’Aquila", "Aquila"], {"Bilt": 3, "Aquila": 2}),
        (
            "entity",
            ["Prof. Dr. Ann Lee", "Der Ingenieur Ann Lee", "Dr.-Ing. Ann Lee", "Ann Lee", "Herr Lee"],
            {"Ann Lee": 4, "Herr Lee": 1},
        ),
        ("entity", ["Geheimrat Lee", "Ann Lee", "Dr. Bo Day", "Graf Zeppelin", "Zeppelin"], None),
        ("entity", ["El Salvador", "Salvador", "AS Roma", "Roma", "The Hague"], None),
        ("string", ["The Red", "Red"], None),
    ],
)
def test_an_object_is_a_vote_for_another_that_says_the_same_or_more(
    kind: str, drawn: list[str], merged: dict[str, int] | None
) -> None:
    relations = {QUERY.relation: small_relation(kind=kind)}
    (pooled,) = Pool(STRINGS, relations=relations).merge([[draws("m", *([text] for text in drawn))]])
    assert {one.text: round(one.score * len(drawn)) for one in pooled.candidates} == (merged or dict.fromkeys(drawn, 1))


def test_two_things_of_one_name_stay_two() -> None:
    found = [Candidate(name, 1.0, sources("m"), id_) for name, id_ in (("The Hague", "Q36600"), ("Hague", "Q1"))]
    twins = [Candidate("Hague", 1.0, sources("m"), "Q2")]
    relations = {QUERY.relation: small_relation()}
    (merged,) = Pool(IDS, relations=relations).merge([[candidate_set(QUERY, (*found, *twins))]])
    assert {one.id for one in merged.candidates} == {"Q36600", "Q1", "Q2"}


def test_existence_stays_apart() -> None:
    doubt = Nil(0.9, sources("m"))
    one = draws("m", ["Ann"], [])
    (merged,) = Pool(edition=STRINGS).merge([[replace(one, nil_probabilities=(doubt,))]])
    assert [(row["object"], row["score"]) for row in rows(merged)] == [("", 0.5), ("Ann", 0.5), ("", 0.9)]
    assert merged.existence == pytest.approx(0.1)
    assert one.existence is None


def test_a_weight_of_no_generator_is_told() -> None:
    with pytest.raises(InputError, match="did you mean 'gpt-4'"):
        pool(STRINGS, {"weights": {"gpt4": 1.0}}).merge([[draws("gpt-4", ["Ann"])]])


ANSWER = st.one_of(st.lists(st.sampled_from(["Ann", "ann", "Bo", "12", "12.0"]), max_size=3), st.just(State.UNPARSED))
MODELS = st.lists(st.lists(ANSWER, min_size=1, max_size=5), min_size=1, max_size=3)


@given(MODELS, st.sampled_from(["draw", "model"]), st.randoms(use_true_random=False))
def test_order_is_irrelevant_and_scores_are_shares(models: list, per: str, random: random.Random) -> None:
    sets = [draws(f"m{index}", *answers) for index, answers in enumerate(models)]
    pool = Pool(STRINGS, part("pool", per=per))
    (merged,) = pool.merge([[one] for one in sets])
    shuffled = [replace(one, candidates=tuple(random.sample(one.candidates, len(one.candidates)))) for one in sets]
    random.shuffle(shuffled)
    (again,) = pool.merge([[one] for one in shuffled])
    assert again.candidates == merged.candidates
    scores = [candidate.score for candidate in merged.candidates]
    assert all(0 <= score <= 1 for score in scores)
    assert scores == sorted(scores, reverse=True)


@given(MODELS)
def test_votes_for_single_answers_sum_to_one(models: list) -> None:
    singles = [[answer[:1] if isinstance(answer, list) else answer for answer in answers] for answers in models]
    sets = [draws(f"m{index}", *answers) for index, answers in enumerate(singles)]
    found = pooled(*sets, of="answers")
    assert sum(found.values()) == pytest.approx(1.0 if found else 0.0, abs=1e-4)


def test_ten_thousand_candidates() -> None:
    names = {f"Name {index}": index / 10_000 for index in range(10_000)}
    found = pooled(scored("m", **names), scored("n", **names))
    assert len(found) == 10_000
    assert next(iter(found)) == "Name 9999"


def test_what_each_model_says_is_kept_apart() -> None:
    answered = (State.ANSWERED,)
    found = pool(IDS, {}).merge(
        [
            [
                candidate_set(
                    QUERY,
                    (Candidate("A", 1.0, sources("m#0"), "Q1"), Candidate("A", 1.0, sources("m#1"), "Q1")),
                    answered * 3,
                )
            ],
            [
                candidate_set(
                    QUERY, (Candidate("A", 0.3, sources("n"), "Q1"),), nil_probabilities=(Nil(0.2, sources("n")),)
                )
            ],
        ]
    )[0]
    assert found.candidates[0].by_model == (("m", 2 / 3), ("n", 0.3))
    assert found.nil_probabilities[0].by_model == (("n", 0.2),)


def test_two_groups_of_one_model_are_told_apart() -> None:
    sets = [candidate_set(QUERY, (Candidate("A", score, sources("m"), "Q1"),)) for score in (0.5, 0.7)]
    (found,) = pool(IDS, {}).merge([[one] for one in sets])
    assert found.candidates[0].by_model == (("m", 0.5), ("m+2", 0.7))


def test_what_was_verified_stays_verified() -> None:
    one = [Candidate("Ann", 1.0, sources(f"m#{draw}"), verification=0.9) for draw in range(3)]
    other = [
        Candidate("ann", 1.0, sources("n#0"), verification=0.5),
        Candidate("Bo", 1.0, sources("n#0")),
        Nil(0.5, sources("n#1")),
    ]
    (merged,) = Pool(edition=STRINGS).merge([[candidate_set(QUERY, tuple(found))] for found in (one, other)])
    assert {c.text: c.verification for c in merged.candidates} == {"Ann": 0.7, "Bo": None}


def test_a_subject_is_not_its_own_object() -> None:
    found = candidate_set(Query("s", "r", "Q1"), (Candidate("s", id="Q1"), Candidate("t", id="Q2"), Nil()))
    relation = SPACE.relation("CountryBordersCountry")
    assert [c.text for c in part("clean").kept(found, relation).candidates] == ["t"]
    allowed = replace(relation, shape=replace(relation.shape, may_be_subject=True))
    assert part("clean").kept(found, allowed) == found


def test_names_tell_the_subject_where_there_is_no_qid() -> None:
    relation = SPACE.relation("CountryBordersCountry")
    named = (Candidate("Chád", id="Q657"), Candidate("Chad", id="Q1"), Candidate("chad"), Candidate("Mali"))
    by_name = part("clean").kept(candidate_set(Query("Chad", "r"), named), relation)
    assert [c.text for c in by_name.candidates] == ["Mali"]
    by_id = part("clean").kept(candidate_set(Query("Chad", "r", "Q657"), named), relation)
    assert [(c.text, c.id) for c in by_id.candidates] == [("Chad", "Q1"), ("Mali", None)]
    number = candidate_set(Query("1984", "r"), (Candidate("1984"),))
    assert part("clean").kept(number, SPACE.relation("SeriesHasNumberOfEpisodes")) == number


@given(st.text(), st.text())
def test_a_source_is_itself_again_after_a_file(model: str, draw: str) -> None:
    source = Source(model, draw)
    assert Source.read(str(source)) == source
    assert ";" not in str(source)


def test_a_sign_in_a_models_name_changes_nothing() -> None:
    """Votes and what each model makes of a candidate are the same, whatever the model is called."""
    plain, odd = (
        pool(STRINGS, {}).merge([[draws(name, ["Ann", "Bo"], ["Ann"], [])]])[0]
        for name in ("model", "mo#del; ?existence")
    )
    assert [(one.text, one.score, len(one.sources)) for one in odd.candidates] == [
        (one.text, one.score, len(one.sources)) for one in plain.candidates
    ]
    assert odd.candidates[0].by_model == (("mo#del; ?existence", plain.candidates[0].by_model[0][1]),)


def test_shares_may_be_of_all_that_a_model_replied_to() -> None:
    said = draws("m", ["5"], State.TRUNCATED, State.UNPARSED, State.MISSING)
    for of, share in (("answers", 1.0), ("replies", 1 / 3)):
        (merged,) = pool(STRINGS, {"of": of}).merge([[said]])
        assert merged.candidates[0].by_model == (("m", share),)
        assert merged.candidates[0].score == share


def test_a_model_without_any_answer_is_a_source_where_replies_count() -> None:
    groups = [[draws("m", ["5"])], [draws("mute", State.UNPARSED)], [draws("away", State.MISSING)]]
    for of, said in (("answers", ()), ("replies", (("mute", 0.0),))):
        (merged,) = pool(STRINGS, {"of": of}).merged(groups, ["m", "mute", "away"])
        assert tuple(pair for nil in merged.nothing for pair in nil.by_model) == said
    (failed,) = pool(STRINGS, {"of": "replies"}).merged(groups[1:], ["mute", "away"])
    assert (failed.nothing, failed.failed) == ((), True)


def test_of_equal_candidates_the_first_that_was_named_may_come_first() -> None:
    said = draws("m", ["Riga", "Latvia"], ["Oslo"], ["Oslo", "Riga", "Latvia"])
    for ties, names in (("name", ["Latvia", "Oslo", "Riga"]), ("first", ["Riga", "Latvia", "Oslo"])):
        (merged,) = pool(STRINGS, {"ties": ties}).merge([[said]])
        assert [one.text for one in merged.candidates] == names


OTHER = structs.replace(QUERY, subject="Other")


def test_blocks_wait_until_it_is_known_whose_model_speaks() -> None:
    silent = [candidate_set(QUERY), candidate_set(OTHER)]
    speaking = [scored("m", Lima=0.5), scored("m", OTHER, Oslo=0.5)]
    later = [candidate_set(QUERY), scored("m", OTHER, Oslo=0.9)]
    whole = Pool(STRINGS).merge([silent, speaking, later])
    assert [by for one in whole for c in one.candidates for by in c.by_model] == [("m", 0.5), ("m", 0.5), ("m+2", 0.9)]
    blocks = [[group[:1] for group in (silent, speaking, later)], [group[1:] for group in (silent, speaking, later)]]
    merging = Merging(Pool(STRINGS))
    assert merging.add(blocks[0], last=False) == []
    assert merging.add(blocks[1], last=True) == whole
    named = Merging(Pool(STRINGS), ["quiet", "m", "m"])
    assert named.add(blocks[0], last=False) + named.add(blocks[1], last=True) == whole
