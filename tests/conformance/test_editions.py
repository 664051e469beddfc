"""Every edition keeps to this, one in `eval/` as any other: its score, its files, its leaderboard, and its data."""

import hashlib
import json
import math
import pickle
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from space import SPACE
from submitted import check

from lmkbc import Edition, InputError, Workspace
from lmkbc.evaluation.official import evaluate
from lmkbc.files.splits import read_examples, read_queries
from lmkbc.run.submission import archive, prediction_lines
from lmkbc.testing import Candidate, Prediction, Query

FILES = sorted(SPACE.folders("eval")[0].glob("*.py"))
every = pytest.mark.parametrize("edition", SPACE.editions.values(), ids=list(SPACE.editions))
IDS, NAMES, NUMBERS = ("Q2", "Q30", "Q400"), ("Lima", "Oslo", "New York"), ("12", "170", "3000")
DATES = ("1985", "1990-10", "44 BC")


def values(edition: Edition, relation: str) -> Sequence[str]:
    """Objects that the relation may have, as the edition writes them."""
    if SPACE.relation(relation).has_values():
        return NUMBERS if SPACE.relation(relation).kind == "number" else DATES
    return IDS if edition.target == "id" else NAMES


def column(edition: Edition, relation: str, objects: Sequence[str]) -> list[Any]:
    """Objects as the edition's gold holds them: with aliases where its scorer reads such."""
    sample = values(edition, relation)[0]
    return [[one] for one in objects] if edition.metric.scorer.matches(sample, [(sample,)], relation) else [*objects]


def scored(edition: Edition, rows: Sequence[tuple[str, Sequence[str], Sequence[str]]]) -> Any:
    """The table of rows, each a relation, answers and gold; subjects are numbers."""
    answers = {(str(at), relation): [*found] for at, (relation, found, _) in enumerate(rows)}
    gold = {(str(at), relation): column(edition, relation, true) for at, (relation, _, true) in enumerate(rows)}
    return edition.metric.evaluate(answers, gold, rows=True)


def test_a_module_is_an_edition_and_says_what_it_is() -> None:
    assert len(FILES) == len(SPACE.editions)
    assert [path.name for path in FILES if not path.read_text(encoding="utf-8").startswith('"""')] == []


@every
def test_what_an_edition_names_is_there(edition: Edition) -> None:
    assert SPACE.edition(edition.name) is edition
    assert pickle.loads(pickle.dumps(edition)) == edition
    for name in edition.relations:
        assert name in SPACE.relation(name).names, "the relation's module lists the edition's spelling"
    for one in edition.published:
        assert one.split in edition.splits
        assert all(0 <= value <= 1 for value in (one.f1, one.p, one.r) if value is not None), one
    assert {relation for _, relation in edition.repeats} <= set(edition.relations)


@every
def test_all_is_one_nothing_is_nought_and_silence_is_right_where_there_is_nothing(edition: Edition) -> None:
    for relation in edition.relations:
        some = values(edition, relation)
        rows = [(some, some), ((), ()), ((), some), (some, ()), (some[:2], some), (some, some[:2])]
        table = scored(edition, [(relation, found, true) for found, true in rows])
        f1 = [score.f1 for _, score in table.rows]
        assert f1[:4] == [1.0, 1.0, 0.0, 0.0], relation
        assert f1[4:] == [pytest.approx(0.8)] * 2


@every
@given(data=st.data())
def test_a_score_depends_on_neither_order_nor_the_other_rows(edition: Edition, data: st.DataObject) -> None:
    rows = []
    for _ in range(data.draw(st.integers(1, 5))):
        relation = data.draw(st.sampled_from(edition.relations))
        part = st.lists(st.sampled_from(values(edition, relation)), unique=True)
        rows.append((relation, data.draw(part), data.draw(part)))
    table = scored(edition, rows)
    found = dict(table.rows)
    scorer = edition.metric.scorer
    for at, (relation, answers, true) in enumerate(rows):
        ((_, alone),) = scored(edition, [(relation, answers[::-1], true[::-1])]).rows
        assert found[str(at), relation] == alone
        gold = column(edition, relation, true)
        hits, predicted, _ = scorer.score(answers, gold, relation)
        assert predicted == len(answers)
        assert hits == scorer.count([scorer.matches(answer, gold, relation) for answer in answers])
    mixed = random.Random(0).sample(rows, len(rows))
    assert scored(edition, mixed).overall.f1 == pytest.approx(table.overall.f1)


@every
def test_what_is_the_same_answer_is_submitted_once(edition: Edition) -> None:
    for relation in edition.relations:
        some = values(edition, relation)
        found = tuple(Candidate(one, id=one if edition.target == "id" else None) for one in (*some, *some, "", " "))
        (line,) = prediction_lines(edition, [Prediction(Query("s", relation), found)]).splitlines()
        assert json.loads(line)[edition.column] == [*some]
        assert all(edition.metric.scorer.key(edition.metric.scorer.key(one)) for one in some)


def written(path: Path, edition: Edition, rows: Sequence[tuple[Query, Sequence[str]]]) -> Path:
    """Gold as the edition publishes it."""
    lines = []
    for query, objects in rows:
        line: dict[str, Any] = {"SubjectEntity": query.subject, "Relation": query.relation}
        if edition.target == "id":
            line |= {"SubjectEntityID": query.subject_id, "ObjectEntities": [f"the {one}" for one in objects] or [""]}
        line[edition.column] = column(edition, query.relation, objects)
        lines.append(json.dumps(line) + "\n")
    path.write_text("".join(lines), encoding="utf-8")
    return path


@every
def test_a_submission_of_the_gold_is_sound_and_has_all_points(edition: Edition, tmp_path: Path) -> None:
    rows = []
    for relation in edition.relations:
        some = values(edition, relation)
        for number, objects in enumerate((some, some[:1], ())):
            rows.append((Query(f"Ōé {number}", relation, "Q1" if edition.target == "id" else None), objects))
    gold = written(tmp_path / "gold.jsonl", edition, rows)
    queries = read_queries(gold, edition)
    assert queries == [query for query, _ in rows]
    examples = read_examples(gold, edition)
    assert [[*map(min, edition.gold(example))] for example in examples] == [[*objects] for _, objects in rows]
    for share, kept in ((1.0, lambda objects: objects), (1 / 3, lambda objects: ())):
        predictions = [
            Prediction(
                query, tuple(Candidate(one, id=one if edition.target == "id" else None) for one in kept(objects))
            )
            for query, objects in rows
        ]
        lines = prediction_lines(edition, predictions)
        check(edition, queries, archive(lines))
        (tmp_path / "p.jsonl").write_bytes(lines)
        found = evaluate(tmp_path / "p.jsonl", gold, edition, strict=True)
        assert found.table.overall.f1 == pytest.approx(share)
        assert not found.remarks


@every
def test_a_query_without_an_answer_is_counted_or_refused_and_never_right_by_accident(
    edition: Edition, tmp_path: Path
) -> None:
    relation = edition.relations[0]
    some = values(edition, relation)
    rows = [(Query(str(number), relation), some) for number in range(2)]
    gold = written(tmp_path / "gold.jsonl", edition, rows)
    (tmp_path / "p.jsonl").write_bytes(
        prediction_lines(edition, [Prediction(rows[0][0], tuple(Candidate(one, id=one) for one in some))])
    )
    with pytest.raises(InputError, match=r"1 missing|lacks 1 of 2 queries"):
        evaluate(tmp_path / "p.jsonl", gold, edition, strict=True)
    try:
        found = evaluate(tmp_path / "p.jsonl", gold, edition)
    except InputError:
        assert edition.metric.missing == "refuse"
    else:
        assert (found.missing, found.table.overall.f1) == (1, 0.5)


@every
def test_splits_that_are_here_are_the_published_ones_and_read(edition: Edition, data_dir: Path) -> None:
    space = Workspace(data=data_dir)
    for split, source in edition.splits.items():
        if not space.has_data(edition, split):
            pytest.skip(f"the {split} split of edition {edition.name} is not here")
        raw = space.split_path(edition, split).read_bytes()
        assert source is None or hashlib.sha256(raw).hexdigest() == source.sha256
        queries = space.queries(edition, split)
        assert len(queries) == len(raw.splitlines())
        assert {query.relation for query in queries} == set(edition.relations)
        if split != "test":
            examples = space.examples(edition, split)
            assert [example.query for example in examples] == queries
            assert all(spellings[0] for example in examples for spellings in edition.gold(example))
            assert math.fsum(bool(example.objects) for example in examples) > len(examples) / 2
