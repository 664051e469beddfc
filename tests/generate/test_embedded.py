"""The embedded default on a tiny edition: what leaks, what survives, what it answers."""

import logging
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small import small_edition, small_relation

from lmkbc import EntityType, InputError, LmkbcError, MatchingScorer, Metric
from lmkbc.files.arrays import ArrayStore
from lmkbc.generate.embedded.embedded import EmbeddedGenerator
from lmkbc.generate.embedded.features import Links, OtherSources
from lmkbc.generate.embedded.signals import steady
from lmkbc.generate.embedded.stack import Stack, Trees
from lmkbc.progress import ExpectedStep
from lmkbc.testing import Candidate, CandidateSet, Example, GoldObject, Nil, Query, State
from tests.candidates import proposals, sources

UNKNOWN = -1.0
ITERATIONS = 120


pytestmark = pytest.mark.floats

PLACE = EntityType("place", "Q1")
EDITION = small_edition(
    ["speaks", "measures", "borders"], metric=Metric(MatchingScorer(frozenset({"measures"})), average="relation")
)
RELATIONS = {
    name: small_relation(
        name,
        subject_type=PLACE,
        object_type=PLACE,
        kind="number" if name == "measures" else "entity",
        symmetric=name == "borders",
    )
    for name in EDITION.relations
}
LANGUAGES = {"ton": "English", "ville": "French", "berg": "German"}


def example(subject: str, relation: str, *objects: str) -> Example:
    return Example(Query(subject, relation), tuple(GoldObject((name,)) for name in objects))


def rows(count: int = 40) -> list[Example]:
    """Towns whose ending gives the language (none for -burg), whose size is about 100, in a ring of neighbours."""
    draw = random.Random(0)
    stems = ["".join(draw.choices("bdfgklmnprstaeiou", k=5)).title() for _ in range(count)]
    towns = [stem + [*LANGUAGES, "burg"][index % 4] for index, stem in enumerate(stems)]
    train = []
    for index, town in enumerate(towns):
        language = LANGUAGES.get(next((end for end in LANGUAGES if town.endswith(end)), ""))
        train.append(example(town, "speaks", *([language] if language else [])))
        train.append(example(town, "measures", str(100 + index % 3)))
        train.append(example(town, "borders", towns[index - 1], towns[(index + 1) % count]))
    return train


TRAIN = rows()


class Letters:
    """Stands in for the sentence encoder: letter counts, scaled to length 1."""

    digest = "letters"

    def __init__(self) -> None:
        self.texts: list[str] = []

    def encode(self, texts: Sequence[str], report: Any = lambda *_: None) -> np.ndarray:
        self.texts += texts
        counts = np.array([[text.lower().count(c) for c in "abdeginortuvl"] for text in texts], dtype=np.float32) + 0.01
        return counts / np.linalg.norm(counts, axis=1, keepdims=True)


def generator(cache: Path, train: Sequence[Example] = TRAIN, encoder: Letters | None = None, seed: int = 0):
    return EmbeddedGenerator(EDITION, RELATIONS, [train], encoder, ArrayStore(cache), seed)  # type: ignore[arg-type]


class Source:
    """A generator that knows some languages by heart, and fails where it is told to."""

    def __init__(self, known: dict[str, str], failing: frozenset[str] = frozenset()) -> None:
        self.known, self.failing, self.asked = known, failing, list[Query]()

    def generate(self, queries: Sequence[Query]) -> Iterator[CandidateSet]:
        self.asked += queries
        for query in queries:
            if query.subject in self.failing:
                yield CandidateSet(query, draws=(State.MISSING,))
            else:
                name = self.known.get(query.subject)
                yield CandidateSet(query, (Candidate(name, 0.9),) if name else (), draws=(State.ANSWERED,) * bool(name))


def heard(cache: Path, train: Sequence[Example], source: Source, *, own: bool = True) -> EmbeddedGenerator:
    return EmbeddedGenerator(
        EDITION,
        RELATIONS,
        [train],
        None,
        ArrayStore(cache),
        sources=OtherSources({"source": source}),
        train_features=own,
    )


def best(found: CandidateSet) -> str:
    first = max(proposals(found), key=lambda one: one.score)
    return first.text if isinstance(first, Candidate) else ""


def by_query(sets) -> dict[Query, CandidateSet]:
    return {found.query: found for found in sets}


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("embedded")


@pytest.mark.whole(but=["vectors"])
@pytest.mark.parametrize("encoder", [None, Letters()], ids=["strings", "vectors"])
def test_it_learns_endings_and_the_empty_answer(cache: Path, encoder: Letters | None) -> None:
    asked = {"Xanton": "English", "Pelville": "French", "Oberberg": "German", "Nilburg": ""}
    found = by_query(generator(cache, encoder=encoder).generate([Query(subject, "speaks") for subject in asked]))
    assert {query.subject: best(each) for query, each in found.items()} == asked


def test_a_number_is_one_that_the_tolerance_makes_right(cache: Path) -> None:
    (found,) = generator(cache).generate([Query("Xanton", "measures")])
    assert best(found) in {"100", "101", "102"}
    assert found.candidates[0].score > 0.5


def test_facts_about_a_candidate_answer_a_symmetric_relation(cache: Path) -> None:
    train = [row for row in TRAIN if row.query != Query(TRAIN[0].query.subject, "borders")]
    (found,) = generator(cache, train).generate([Query(TRAIN[0].query.subject, "borders")])
    neighbours = {TRAIN[-1].query.subject, TRAIN[3].query.subject}
    assert {candidate.text for candidate in found.candidates[:2]} == neighbours


def test_an_object_that_only_the_own_row_names_is_never_proposed(cache: Path) -> None:
    train = [*TRAIN, example("Onlyton", "speaks", "Klingon"), example("Loneville", "borders", "Nowhere")]
    found = by_query(generator(cache, train).generate([row.query for row in train]))
    assert found.keys() == {row.query for row in train}
    assert "Klingon" not in {candidate.text for candidate in found[Query("Onlyton", "speaks")].candidates}
    assert "Nowhere" not in {candidate.text for candidate in found[Query("Loneville", "borders")].candidates}


def test_out_of_fold_scores_do_not_depend_on_the_own_answer(tmp_path: Path) -> None:
    query = TRAIN[0].query
    changed = [example(query.subject, query.relation, "Elvish"), *TRAIN[1:]]
    before = by_query(generator(tmp_path).generate([query]))[query]
    assert before == by_query(generator(tmp_path, changed).generate([query]))[query]


def held_out_pairs(train: Sequence[Example], held_out: int) -> tuple[list[str], Any]:
    """Pairs of the first rows of "speaks", learned from its other rows, and the proposed texts."""
    table = Stack(EDITION, RELATIONS, train, Letters().encode)._tables["speaks"]
    asked, rest = np.arange(held_out), np.arange(held_out, len(table.queries))
    pairs = table.pairs(
        Links(EDITION, train), rest, table.positions[rest], table.queries[:held_out], table.texts[asked]
    )
    return [table.closed.candidates[column].text for column in pairs.candidates], pairs


def test_a_candidate_without_a_source_in_the_other_folds_is_masked() -> None:
    train = [example(f"Odd{index}ton", "speaks", f"Tongue {index}") for index in range(10)]
    texts, _ = held_out_pairs(train, held_out=2)
    assert set(texts) == {f"Tongue {index}" for index in range(2, 10)}


def test_features_tell_nothing_about_the_held_out_answers() -> None:
    known = [example(f"Odd{index}ton", "speaks", f"Tongue {index}") for index in range(10)]
    for answers in (["Tongue 7", "Tongue 3"], ["Tongue 0"], []):
        texts, pairs = held_out_pairs([example("Newton", "speaks", *answers), *known], held_out=1)
        before = held_out_pairs([example("Newton", "speaks", "Tongue 5"), *known], held_out=1)
        assert texts == before[0]
        np.testing.assert_array_equal(pairs.features, before[1].features)


@pytest.mark.whole(but=["subjects0"])
@pytest.mark.parametrize("subjects", [("Xanton", "Pelville"), ("Xanton", TRAIN[0].query.subject)])
def test_a_text_is_encoded_once_whatever_is_asked_after_it(tmp_path: Path, subjects: tuple[str, str]) -> None:
    encoder = Letters()
    embedded = generator(tmp_path, encoder=encoder)
    for subject in (*subjects, *subjects):
        list(embedded.generate([Query(subject, "speaks")]))
    assert len(encoder.texts) == len(set(encoder.texts))
    assert {"", *subjects} <= set(encoder.texts)
    warm = Letters()
    list(generator(tmp_path, encoder=warm).generate([Query(subjects[0], "speaks")]))
    assert not set(warm.texts) - set(subjects)


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda raw: b"", marks=pytest.mark.whole),
        pytest.param(lambda raw: raw[:-9], marks=pytest.mark.whole),
        lambda raw: raw[:200] + b"!" + raw[201:],
    ],
)
def test_a_damaged_cache_is_made_again(tmp_path: Path, damage, caplog: pytest.LogCaptureFixture) -> None:
    queries = [Query("Xanton", "speaks")]
    first = list(generator(tmp_path, encoder=Letters()).generate(queries))
    files = sorted(tmp_path.iterdir())
    sound = [file.read_bytes() for file in files]
    for file in files:
        file.write_bytes(damage(file.read_bytes()))
    with caplog.at_level(logging.WARNING, logger="lmkbc"):
        assert list(generator(tmp_path, encoder=Letters()).generate(queries)) == first
    assert "is damaged" in caplog.text
    assert [file.read_bytes() for file in files] == sound


def test_other_train_rows_or_another_encoder_are_another_fit(tmp_path: Path) -> None:
    for train, encoder in ((TRAIN, None), (TRAIN[:-3], None), (TRAIN, Letters())):
        before = len(list(tmp_path.glob("trees-*")))
        list(generator(tmp_path, train, encoder).generate([Query("Xanton", "speaks")]))
        assert len(list(tmp_path.glob("trees-*"))) == before + 1


@pytest.mark.parametrize("train", [TRAIN[:1], TRAIN[:3], [example("Xton", "speaks")]])
def test_hardly_any_train_rows(tmp_path: Path, train: list[Example]) -> None:
    queries = [Query("Xanton", name) for name in EDITION.relations]
    found = by_query(generator(tmp_path, train).generate(queries))
    assert found.keys() == set(queries)
    assert len(list(generator(tmp_path, train).generate([row.query for row in train]))) == len(train)


def test_no_train_rows_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no train rows"):
        generator(tmp_path, [])


def test_each_step_is_told_before_it_begins_and_to_its_end(tmp_path: Path) -> None:
    told: list[tuple[str, int, int | None]] = []
    made = EmbeddedGenerator(
        EDITION,
        RELATIONS,
        [TRAIN],
        None,
        ArrayStore(tmp_path),
        report=lambda *step: told.append(step),  # type: ignore[arg-type]
    )
    answers = made.generate([Query("Xanton", "speaks"), Query("Xanton", "measures")])
    assert next(answers).query.relation == "speaks"  # the first relation's answers do not wait for the second's
    assert [(name, total) for name, _, total in told if isinstance(name, ExpectedStep)] == [
        ("signals (folds)", 10),
        ("boost (trees)", ITERATIONS),
    ]
    told = [step for step in told if not isinstance(step[0], ExpectedStep)]
    steps = {name: [done for one, done, _ in told if one == name] for name, _, _ in told}
    assert steps == {"signals (folds)": list(range(11)), "boost (trees)": [0, *range(ITERATIONS + 1)]}
    assert {total for _, _, total in told} == {10, ITERATIONS}


@pytest.mark.parametrize("rows", [30, 300, 12_000])  # above 10,000 rows scikit-learn scores a part of them
def test_trees_say_what_scikit_learn_says(rows: int) -> None:
    from sklearn.ensemble import HistGradientBoostingClassifier

    rng = np.random.default_rng(0)
    features = rng.normal(size=(rows, 4)).astype(np.float32).round(1)
    right = features[:, 0] + features[:, 1] * features[:, 2] + rng.normal(size=rows) > 0.5
    ours = Trees.of(Trees.fit(features, right, 3).arrays())
    theirs = HistGradientBoostingClassifier(
        max_iter=ITERATIONS,
        learning_rate=0.06,
        max_leaf_nodes=12,
        min_samples_leaf=30,
        l2_regularization=5.0,
        early_stopping=False,
        random_state=3,
    ).fit(features, right)
    assert len(ours.feature) == ITERATIONS
    np.testing.assert_allclose(ours.probabilities(features), theirs.predict_proba(features)[:, 1], rtol=1e-9)


def untold(count: int = 120) -> tuple[list[Example], dict[str, str]]:
    """Towns whose names tell nothing of their language, and what a source knows by heart of them and of two more."""
    draw = random.Random(1)
    names = ["".join(draw.choices("bdfgklmnprstaeiou", k=7)).title() for _ in range(count)]
    known = {name: draw.choice([*LANGUAGES.values()]) for name in [*names, "Here", "There"]}
    return [example(name, "speaks", known[name]) for name in names], known


def test_a_source_that_is_right_of_train_is_heeded_and_asked_once(tmp_path: Path) -> None:
    train, known = untold()
    source = Source(known)
    made = heard(tmp_path, train, source)
    queries = [Query("Here", "speaks"), Query("There", "speaks")]
    for _ in range(2):
        found = by_query(made.generate(queries))
        assert {query.subject: best(each) for query, each in found.items()} == {
            q.subject: known[q.subject] for q in queries
        }
    rows = [row.query for row in train]
    assert Counter(source.asked) == Counter([*rows, *queries, *queries])  # train alone is kept
    assert set(source.asked[: len(rows)]) == set(rows)  # and apart, so that no query changes what is made of it
    mistaken = Source(known | dict.fromkeys(known, "Volapük"))
    assert by_query(heard(tmp_path, train, mistaken).generate(queries)) != found, (
        "what was fitted to another source is no use"
    )


@pytest.mark.whole(but=["False"])
@pytest.mark.parametrize("own", [False, True])
def test_names_are_looked_at_only_where_a_stack_has_signals_of_its_own(tmp_path: Path, own: bool) -> None:
    known = {row.query.subject: row.objects[0].name for row in TRAIN if row.objects}

    def scored(prefix: str) -> list[list[tuple[str, float]]]:
        train = [
            Example(Query(prefix + row.query.subject, row.query.relation), row.objects)
            for row in TRAIN
            if row.query.relation == "speaks"
        ]
        source = Source({prefix + name: language for name, language in known.items()})
        made = heard(tmp_path, train, source, own=own)
        found = by_query(made.generate([row.query for row in train]))
        return [[(one.text, one.score) for one in found[row.query].candidates] for row in train]

    assert (scored("") == scored("Market-")) is not own


def test_what_a_source_fails_to_answer_has_failed(tmp_path: Path) -> None:
    train, known = untold(40)
    here, there = Query("Here", "speaks"), Query("There", "speaks")
    found = by_query(heard(tmp_path, train, Source(known, frozenset({"Here"}))).generate([here, there]))
    assert (found[here].failed, found[there].failed) == (True, False)
    with pytest.raises(LmkbcError, match=r"was not answered.*run again"):
        list(heard(tmp_path, train, Source(known, frozenset({train[3].query.subject}))).generate([here]))


def test_a_source_names_objects_by_id_or_by_name_and_may_know_nothing() -> None:
    query, other = Query("Here", "speaks"), Query("There", "speaks")

    class Said:
        def generate(self, queries: Sequence[Query]) -> Iterator[CandidateSet]:
            yield CandidateSet(
                query, (Candidate("tongue", 0.5, id="Q1"), Candidate("ENGLISH", 0.25)), nothing=(Nil(0.125),)
            )
            yield CandidateSet(other, draws=())

    sources = OtherSources({"said": Said()})
    sources.ask([query, other])
    closed = [Candidate(""), Candidate("English"), Candidate("A tongue", id="Q1"), Candidate("Elvish")]
    signal = sources.signals([query, other], closed)["said"]
    assert signal.tolist() == [[0.125, 0.25, 0.5, UNKNOWN], [UNKNOWN] * 4]


def test_progress_names_the_group_before_its_first_answer() -> None:
    class Heard:
        def generate(self, queries: Sequence[Query]) -> Iterator[CandidateSet]:
            yield from (CandidateSet(query, draws=()) for query in queries)

    reports = list[tuple[str, int, int | None]]()
    sources = OtherSources({"heard": Heard()}, lambda *report: reports.append(report))
    sources.ask([Query("Here", "speaks")], [Query("There", "borders")])
    first, second = (f"language models (answers, group {number} of 2)" for number in (1, 2))
    assert reports == [(first, 0, 2), (first, 1, 2), (second, 1, 2), (second, 2, 2)]


class Reader:
    """Sees the language of a town's people where its name tells nothing of it."""

    def __init__(self, known: dict[str, str]) -> None:
        self.known, self.asked = known, list[Query]()

    def read(self, *groups: Sequence[Query]) -> np.ndarray:
        queries = [query for group in groups for query in group]
        self.asked += queries
        draw = np.random.default_rng(0)
        signs = np.array([[known == self.known.get(q.subject) for known in LANGUAGES.values()] for q in queries], float)
        return np.concatenate([signs, draw.normal(scale=0.1, size=(len(queries), 8))], axis=1)


def test_states_of_a_model_are_learned_from_and_read_once(tmp_path: Path) -> None:
    train, known = untold()
    reader = Reader(known)
    made = EmbeddedGenerator(EDITION, RELATIONS, [train], None, ArrayStore(tmp_path), reader=reader)  # type: ignore[arg-type]
    queries = [Query("Here", "speaks"), Query("There", "speaks")]
    for _ in range(2):
        found = by_query(made.generate(queries))
        assert {query.subject: best(each) for query, each in found.items()} == {
            q.subject: known[q.subject] for q in queries
        }
    assert Counter(reader.asked) == Counter([*(row.query for row in train), *queries, *queries])  # train alone is kept


def test_what_several_draws_say_is_a_mean_in_which_silence_counts_0() -> None:
    query = Query("Here", "speaks")

    class Drawn:
        def generate(self, queries: Sequence[Query]) -> Iterator[CandidateSet]:
            yield CandidateSet(
                query,
                (
                    Candidate("English", 1.0, sources("m#1")),
                    Candidate("english", 0.5, sources("m#1")),
                    Candidate("English", 1.0, sources("m#2")),
                ),
                draws=(State.ANSWERED, State.ANSWERED, State.ABSTAINED, State.UNPARSED, State.ANSWERED),
                nothing=(Nil(1.0, sources("m#3")),),
            )

    heard_of = OtherSources({"m": Drawn()})
    heard_of.ask([query])
    assert heard_of.signals([query], [Candidate(""), Candidate("English")])["m"].tolist() == [[0.25, 0.5]]


@given(st.lists(st.floats(-50, 50), min_size=1, max_size=20), st.integers(4, 16))
def test_what_is_rounded_is_close_and_is_rounded_once(values: list[float], bits: int) -> None:
    exact = np.array(values)
    rounded = steady(exact, bits)
    assert np.all(np.abs(rounded - exact) <= np.maximum(np.abs(exact) * 2.0**-bits, 2.0**-24))
    np.testing.assert_array_equal(steady(rounded, bits), rounded)
    assert not np.signbit(rounded[rounded == 0]).any()  # bytes, too, are one


@given(st.integers(0, 2**31))
def test_what_another_processor_adds_otherwise_is_rounded_away(seed: int) -> None:
    values = np.random.default_rng(seed).normal(size=200)
    other = values * (1 + np.random.default_rng(seed + 1).uniform(-1, 1, size=200) * 1e-13)
    np.testing.assert_array_equal(steady(values), steady(other))
