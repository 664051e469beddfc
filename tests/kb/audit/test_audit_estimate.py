"""The sample has every fact's chance; the estimate is exact for a census and covers; what is wrong is found."""

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bases import fact, mixed, written

import lmkbc
from lmkbc.kb.audit.precision import shares
from lmkbc.kb.audit.sample import SampleCell
from lmkbc.testing import exports

OTHERS = 8
Rows = list[dict[str, Any]]


def sampled(folder: Path, facts: Sequence[dict[str, Any]], size: int) -> tuple[Rows, str]:
    """Return the lines of a sample of a new base, and its page."""
    made = lmkbc.audit(written(folder / "kb", facts), sample=size, out=folder / "sample")
    assert made.labels
    assert made.page
    return [json.loads(line) for line in made.labels.read_bytes().splitlines()], made.page.read_text()


def labelled(folder: Path, rows: Rows, label: Callable[[dict[str, Any]], str]) -> lmkbc.Audit:
    """Return the audit of a base by labels of all lines of its sample."""
    file = folder / "labels.jsonl"
    file.write_text("".join(json.dumps(row | {"label": label(row)}) + "\n" for row in rows))
    return lmkbc.audit(folder / "kb", labels=file)


def log_odds(confidence: np.ndarray) -> np.ndarray:
    """Return log-odds, as far as 0.02 from certainty."""
    clipped = np.clip(confidence, 0.02, 0.98)
    return np.asarray(np.log(clipped / (1 - clipped)))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_recalibration_is_where_no_step_is_left_and_few_labels_are_shrunk_to_all(tmp_path: Path, seed: int) -> None:
    rows, _ = sampled(tmp_path, mixed(60), 60)
    wrong = np.random.default_rng(seed).random(1000) < 0.2 * (seed + 1)
    made = labelled(tmp_path, rows, lambda row: "n" if wrong[row["fact"]] else "y").recalibration
    for name, weights, centre in (
        (None, made.pooled, (0.0, 1.0)),
        *((n, w, made.pooled) for n, w in made.relations.items()),
    ):
        own = [row for row in rows if name in (None, row["relation"])]
        z = log_odds(np.array([row["confidence"] for row in own]))
        right = np.array([not wrong[row["fact"]] for row in own])
        features = np.stack([np.ones_like(z), z], axis=-1)
        p = 1 / (1 + np.exp(-features @ np.array(weights)))
        slope = (right - p) @ features - 0.5 * (np.array(weights) - centre)
        assert np.abs(slope).max() <= 0.01, name  # rounded weights
    assert made.expected(["never seen"], np.array([0.9])) == pytest.approx(
        1 / (1 + np.exp(-np.array([1.0, np.log(9.0)]) @ made.pooled))
    )


def test_a_census_is_certain(tmp_path: Path) -> None:
    facts = mixed(30)
    rows, _ = sampled(tmp_path, facts, 500)
    assert len(rows) == len(facts)
    *_, whole = labelled(tmp_path, rows, lambda row: "y" if row["fact"] % 3 else "n").precision
    share = sum(row["fact"] % 3 > 0 for row in rows) / len(rows)
    assert (whole.precision, whole.low, whole.high) == pytest.approx([share] * 3, abs=1e-4)


def test_intervals_cover_and_a_relation_without_labels_is_left_open() -> None:
    random = np.random.default_rng(0)
    p = np.array([0.1, 0.3, 0.5, 0.7, 0.9, 0.95])
    cells = [SampleCell("ab"[at // 3], at, 400, confidence) for at, confidence in enumerate(p)]
    right = random.binomial(400, 1 / (1 + np.e * (1 - p) / p))  # too sure
    drawn = np.full((4000, 6), 15.0)
    found = shares(cells, drawn, random.hypergeometric(right, 400 - right, 15, (4000, 6)).astype(float))
    for name, own in ((None, slice(6)), ("a", slice(3)), ("b", slice(3, 6))):
        truth = right[own].sum() / (400 * len(p[own]))
        covered = (found[name].low <= truth) & (truth <= found[name].high)
        assert covered.mean() == pytest.approx(0.95, abs=0.015), name
    cells = [SampleCell("a", 0, 50, 0.8), SampleCell("b", 0, 50, 0.8)]
    found = shares(cells, np.array([10.0, 0.0]), np.array([10.0, 0.0]))
    assert found["b"].high - found["b"].low > 0.7
    one = shares([SampleCell("a", 0, 10**9, 0.83)], np.array([100.0]), np.array([83.0]))["a"]
    assert [float(value) for value in one] == pytest.approx([0.83, 0.7445, 0.8911], abs=1e-3)  # Wilson's, by hand


@pytest.mark.parametrize("size", [10, 40, 200])
def test_a_sample_is_divided_among_all_bins(tmp_path: Path, size: int) -> None:
    facts = mixed()
    rows, _ = sampled(tmp_path, facts, size)
    assert len({row["fact"] for row in rows}) == len(rows) == size
    for row in rows:
        known = facts[row["fact"]]
        assert [row[name] for name in ("relation", "subject", "object")] == [
            known[name] for name in ("relation", "subject", "object")
        ]
    drawn = {(row["relation"], int(row["confidence"] * 10)) for row in rows}
    assert size < 200 or drawn == {(one["relation"], int(one["confidence"] * 10)) for one in facts}
    *parts, whole = labelled(tmp_path, rows, lambda _: "y").precision
    assert {one.relation: one.facts for one in parts} == {"country-borders": 300, "children": 103}
    assert (whole.facts, whole.labelled) == (403, size)


def test_unsure_strata_are_drawn_from_more_often(tmp_path: Path) -> None:
    unsure = [fact(row, "children", "1", 0.5) for row in range(1000)]
    rows, _ = sampled(tmp_path, [*unsure, *(fact(row, "children", "2", 0.99) for row in range(1000))], 70)
    assert Counter(row["object"] for row in rows) == {"1": 50, "2": 20}


def test_few_facts_that_labelled_rows_state_are_drawn_twice_at_least(tmp_path: Path) -> None:
    stated = [fact(row, "children", "2", 0.5, stated_by=["train"]) for row in range(3)]
    rows, _ = sampled(tmp_path, [*(fact(row, "children", "1", 0.5) for row in range(1000)), *stated], 10)
    assert Counter(row["object"] for row in rows) == {"1": 8, "2": 2}


def test_a_fact_is_drawn_as_often_as_its_like(tmp_path: Path) -> None:
    base = written(tmp_path / "kb", [fact(row, "children", "1", 0.5) for row in range(30)])
    times = Counter[int]()
    for seed in range(30):
        labels = lmkbc.audit(base, sample=10, seed=seed, out=tmp_path / str(seed)).labels
        assert labels
        times.update(json.loads(line)["fact"] for line in labels.read_bytes().splitlines())
    assert (times.total(), len(times)) == (300, 30)
    assert max(abs(one - 10) for one in times.values()) < 4 * (30 * 2 / 9) ** 0.5


def test_an_entity_of_many_facts_shows_few(tmp_path: Path) -> None:
    many = [fact(0, "country-borders", f"land {number}", number / 20_000) for number in range(20_000)]
    _, page = sampled(tmp_path, many, 10)
    assert re.findall(r'"further": ?(\d+)', page) == [str(20_000 - 1 - OTHERS)] * 10
    assert page.count("country-borders: land 19999 (") >= 9
    assert "land 19990 (" not in page


def test_no_confidence_below_one_is_shown_as_one(tmp_path: Path) -> None:
    _, page = sampled(
        tmp_path, [fact(row, "country-borders", "Mali", p) for row, p in enumerate((0.9996, *[0.5] * 9))], 10
    )
    assert [shown in page for shown in ("1.000", "0.999", "0.500")] == [False, True, True]
    for p, shown in ((0.999999, "0.99"), (0.5, "0.50")):
        assert shown in exports.exported("quickstatements", [exports.fact(object_id="Q1016", confidence=p)]).text
