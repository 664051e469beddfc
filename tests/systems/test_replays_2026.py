"""Whole systems of 2026 from their authors' recorded channels: the rows that they sent come out."""

import gzip
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command import Command
from loopback import Loopback

from lmkbc import registry

NUMBERS = {"hasArea", "hasCapacity"}


def rows_of(path: Path) -> dict[tuple[str, str], list[str]]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return {(row["SubjectEntity"], row["Relation"]): row["ObjectEntities"] for row in map(json.loads, lines)}


def few(data: Path, folder: Path, each: int) -> Path:
    """Return a folder of data whose test split has the first queries of each relation."""
    own = folder / "data" / "lmkbc2026"
    own.mkdir(parents=True)
    for name in ("train", "val"):
        (own / f"{name}.jsonl").symlink_to(data / "lmkbc2026" / f"{name}.jsonl")
    lines = (data / "lmkbc2026" / "test.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    asked: dict[str, list[str]] = {}
    for line in lines:
        asked.setdefault(json.loads(line)["Relation"], []).append(line)
    (own / "test.jsonl").write_text("".join(line for own in asked.values() for line in own[:each]), encoding="utf-8")
    return own.parent


def same(relation: str, given: list[str], wanted: list[str]) -> bool:
    """Whether two rows are the same as sets; numbers may differ by one in a thousand."""
    if relation in NUMBERS and len(given) == len(wanted) == 1:
        return math.isclose(float(given[0]), float(wanted[0]), rel_tol=1e-3)
    return set(given) == set(wanted)


def differing(given: Path, wanted: Path) -> Iterator[tuple[Any, ...]]:
    rows = rows_of(wanted)
    for query, objects in rows_of(given).items():
        if query in rows and not same(query[1], objects, rows[query]):
            yield query, objects, rows[query]


@pytest.mark.whole(but=["duke26-plain-muse-expected_plain.jsonl"])
@pytest.mark.parametrize(
    ("system", "folder", "expected"),
    [
        ("duke26", "muse", "expected.jsonl"),
        ("duke26-plain", "muse", "expected_plain.jsonl"),
        pytest.param("cs2-26", "cs2", "expected.jsonl", marks=pytest.mark.slow),
    ],
)
def test_recorded_channels_give_the_rows_that_were_sent(
    system: str, folder: str, expected: str, data_dir: Path, command: Command, tmp_path: Path
) -> None:
    recorded = data_dir / "recorded" / "2026-test"
    if not (recorded / folder).is_dir():
        pytest.skip(f"recorded data absent: {folder}")
    files = [*sorted((recorded / folder).glob("*.jsonl.gz")), *sorted(recorded.glob(f"{folder}__*.jsonl.gz"))]
    given = [word for file in files for word in ("--from", file)]
    run = tmp_path / "run"
    words = ("predict", "--edition", "2026", "--split", "test", "--system", system, "--untuned", "--offline")
    _, told = command.done(*words, "--data", few(data_dir, tmp_path, 10), "--out", run, *given)
    assert [*differing(run / "predictions.jsonl", recorded / folder / expected)] == []
    if system != "cs2-26":
        assert "the recipe asks nothing as hint: these rows are left out" in told


DRAW = {
    "muse": '{"city": "Lyon"} then {"objects": ["Chad", "Mali"], "value": 7, "unit": "km2", "city": "Lyon"}',
    "line": "A place. Lyon, Paris\nCity: Lyon\nFinal answer: 7 million",
    "list": '["Lyon", "7"]',
    "final": "A place.\nFinal answer: Lyon 7",
    "cs2": " Lyon\nYears: 1900-1950\nCity of death: Lyon, France\nIt covers 7 square miles",
}


@pytest.mark.whole(but=["core26-final", "v19-26-line"])
@pytest.mark.parametrize(
    ("system", "draw"),
    [
        ("duke26", "muse"),
        ("duke26-plain", "muse"),
        ("v19-26", "line"),
        ("core26", "final"),
        ("setprobe26", "list"),
        ("instax26", "line"),
        pytest.param("cs2-26", "cs2", marks=pytest.mark.slow),
    ],
)
def test_a_model_is_asked_in_the_way_in_which_its_replies_are_replayed(
    system: str, draw: str, data_dir: Path, command: Command, tmp_path: Path
) -> None:
    text = DRAW[draw]
    data = few(data_dir, tmp_path, 1)
    words = ("predict", "--edition", "2026", "--split", "test", "--system", system, "--untuned", "--data", data)
    with Loopback(lambda _: text) as server:
        command.done(*words, "--base-url", server.url, "--out", tmp_path / "asked")
    replies = tmp_path / "asked" / "replies.jsonl.gz"
    command.done(*words, "--offline", "--from", replies, "--out", tmp_path / "again")
    asked, again = ((tmp_path / run / "predictions.jsonl").read_bytes() for run in ("asked", "again"))
    assert asked == again
    assert b"Lyon" in asked


def test_all_names_of_a_kind_are_listed_in_lines_and_no_subject_is_asked_about_itself(
    data_dir: Path, command: Command, tmp_path: Path
) -> None:
    lists = "Here they are:\n1. Chad\n- Mali\n* Sri Lanka.\n"
    data = few(data_dir, tmp_path, 1)
    row = {"SubjectEntity": "Mali", "Relation": "countryLandBordersCountry"}
    (data / "lmkbc2026" / "test.jsonl").write_text(json.dumps(row) + "\n")
    words = ("predict", "--edition", "2026", "--split", "test", "--system", "duke26", "--untuned", "--data", data)
    with Loopback(lambda asked: lists if "sovereign" in str(asked) else DRAW["muse"]) as server:
        command.done(*words, "--base-url", server.url, "--out", tmp_path / "asked")
    with gzip.open(tmp_path / "asked" / "replies.jsonl.gz", "rt") as file:
        probed = [row["verification"] for row in map(json.loads, file) if row.get("verification")]
    assert [sorted(one) for one in probed] == [["Chad", "Sri Lanka"]]


def test_an_object_counts_where_it_is_the_last_or_the_first_if_that_is_empty() -> None:
    names, area = registry.LISTINGS.get("duke26/names"), registry.LISTINGS.get("duke26/area")
    assert names.split('{"objects": ["a"]} or ```json\n{"objects": ["b", 1, ""]}```').objects == ("b",)
    assert names.split('{"objects": ["a"]} {}').objects == ("a",)
    assert [names.split(text).state for text in ('{"objects": []}', '{"names": []}', "no")] == [
        "abstained",
        "unparsed",
        "unparsed",
    ]
    assert area.split('{"value": "about 1,000", "unit": "mi2"}').objects == ("2589.99",)
    assert area.split('{"value": 0}').state == "abstained"
    assert registry.LISTINGS.get("duke26/first-figure").parts("In 1987: 18 km² of 1,200 km²") == ["1987.0"]


def test_an_area_is_the_first_number_that_is_no_ordinal_in_its_unit() -> None:
    area = registry.LISTINGS.get("cs2-26/area")
    texts = "the 3rd island, of 2.5 sq mi", "103.029,25 km2", "1,200 ha", "a lake", "0 km2", "1.5e3 km²"
    assert [[round(float(one), 4) for one in area.parts(text)] for text in texts] == [
        [6.475],
        [103029.25],
        [12.0],
        [],
        [],
        [1500.0],
    ]
