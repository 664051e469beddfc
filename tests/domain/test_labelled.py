import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from languages import CONTACT, DATES, DESIGNERS, WEIGHTS, client, languages, relation, server
from small import small_edition
from wikidata_server import WikidataServer, item

import lmkbc
from lmkbc import EntityType, IdScorer, InputError, LmkbcError, MatchingScorer, Metric
from lmkbc.domain.gold import subjects
from lmkbc.domain.labelled import make_data
from lmkbc.files.splits import read_examples

SPLITS = ("train", "val", "test")


RELATIONS = (DESIGNERS, DATES, WEIGHTS)


def make(stand_in: WikidataServer, folder: Path, asked: Any = RELATIONS, **settings: Any) -> Any:
    """Make data in a folder, with the cache beside it. Settings of the client stand in `waits`."""
    waits = settings.pop("waits", {})
    return make_data(
        asked,
        folder / "data",
        client=client(stand_in.sparql, **waits),
        endpoint="https://query.example/sparql",
        cache=folder / "cache.sqlite",
        **{"per_relation": 60, **settings},
    )


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((folder / "data").iterdir())}


def rows(folder: Path) -> dict[str, list[dict[str, Any]]]:
    return {
        split: [json.loads(line) for line in (folder / "data" / f"{split}.jsonl").read_text().splitlines()]
        for split in SPLITS
    }


def test_rows_hold_what_wikidata_states(tmp_path: Path) -> None:
    with server() as stand_in:
        drawn = make(stand_in, tmp_path, per_relation=2000)
    by_subject = {(row["Relation"], row["SubjectEntityID"]): row for split in rows(tmp_path).values() for row in split}
    assert ("designed-by", "Q1002") not in by_subject, "another subject of the same label is better known"
    assert by_subject["designed-by", "Q1001"]["ObjectEntitiesID"] == [f"Q{2000 + at}" for at in range(7)]
    assert by_subject["designed-by", "Q1003"] == {
        "SubjectEntityID": "Q1003",
        "SubjectEntity": "Lang 2",
        "Relation": "designed-by",
        "ObjectEntities": [["Person 14", "Dr 14", "P. 14"]],
        "ObjectEntitiesID": ["Q2014"],
    }
    assert by_subject["designed-by", "Q1005"]["ObjectEntities"] == []
    assert by_subject["designed-by", "Q5008"]["ObjectEntitiesID"] == ["Q2003"]
    assert by_subject["designed-by", "Q5007"]["SubjectEntity"] == "Every"
    assert by_subject["inception", "Q1001"]["ObjectEntities"] == [["1950"]]
    assert by_subject["inception", "Q1002"]["ObjectEntities"] == [["1951-03"]]
    assert by_subject["inception", "Q1003"]["ObjectEntities"] == [["1952-03-05"]]
    assert by_subject["inception", "Q5011"]["ObjectEntities"] == [["44 BC"]]
    assert by_subject["mass", "Q1001"]["ObjectEntitiesID"] == ["1.5"]
    assert by_subject["mass", "Q1002"]["ObjectEntitiesID"] == ["0.0025"], "grams became kilograms"
    assert not {"Q5009", "Q5010"} & {qid for _, qid in by_subject}
    assert drawn["designed-by"].left_out == {
        "an object without a label": 1,
        "an unknown value": 1,
        "both a value and 'no value'": 1,
        "deprecated values alone": 1,
        "label of a better known subject": 1,
        "no label": 1,
    }
    assert drawn["inception"].left_out == {"a date coarser than a decade": 1, "a day or month of another calendar": 1}
    assert drawn["mass"].left_out == {"a number in another unit": 1}


def test_splits_share_no_subject_and_each_stratum_is_in_each(tmp_path: Path) -> None:
    with server() as stand_in:
        drawn = make(stand_in, tmp_path)
    splits = rows(tmp_path)
    named = {split: {row["SubjectEntityID"] for row in split_rows} for split, split_rows in splits.items()}
    assert sum(map(len, named.values())) == len(frozenset[str]().union(*named.values()))
    for name, one in drawn.items():
        assert sum(one.rows.values()) == 60
        assert max(one.rows.values()) - min(one.rows.values()) <= 6, name
        assert one.rows == {split: sum(row["Relation"] == name for row in splits[split]) for split in SPLITS}
    strata = drawn["designed-by"].strata
    assert {stratum.objects for stratum in strata} == {"0", "1", "2-4", "5+"}
    assert all(min(stratum.splits.values()) >= 1 for stratum in strata if stratum.found >= 3)
    assert sum(stratum.found for stratum in strata) == drawn["designed-by"].usable
    empties = Counter(split for split in SPLITS for row in splits[split] if not row["ObjectEntitiesID"])
    assert min(empties[split] for split in SPLITS) >= 1
    manifest = json.loads((tmp_path / "data" / "manifest.json").read_text())
    assert manifest["relations"]["mass"]["rows"] == drawn["mass"].rows
    assert manifest["endpoint"] == "https://query.example/sparql"


@pytest.mark.parametrize(
    ("column", "target", "scorer"),
    [
        ("ObjectEntities", "string", MatchingScorer(frozenset({"mass"}))),
        ("ObjectEntitiesID", "id", IdScorer(distinct=True)),
    ],
)
def test_editions_of_both_layouts_read_the_rows(tmp_path: Path, column: Any, target: Any, scorer: Any) -> None:
    with server() as stand_in:
        make(stand_in, tmp_path)
    names = ["designed-by", "inception", "mass"]
    edition = small_edition(names, column=column, target=target, metric=Metric(scorer, average="row"))
    examples = {example.query: example for example in read_examples(tmp_path / "data" / "train.jsonl", edition)}
    read = rows(tmp_path)["train"]
    assert len(examples) == len(read)
    for row, example in zip(read, examples.values(), strict=True):
        assert [gold.id for gold in example.objects] == row["ObjectEntitiesID"]
        assert [list(gold.names) for gold in example.objects] == row["ObjectEntities"]
        accepted = row["ObjectEntities"] if target == "string" else [[qid] for qid in row["ObjectEntitiesID"]]
        assert [list(names) for names in edition.gold(example)] == accepted


def test_the_same_seed_gives_the_same_bytes_and_another_one_others(tmp_path: Path) -> None:
    with server() as stand_in:
        make(stand_in, tmp_path)
        first, asked = content(tmp_path), stand_in.served
        make(stand_in, tmp_path)
        assert (content(tmp_path), stand_in.served) == (first, asked), "an answer was asked for again"
        make(stand_in, tmp_path, refresh=True)
        assert (content(tmp_path), stand_in.served) == (first, 2 * asked)
        make(stand_in, tmp_path, seed=1)
        assert content(tmp_path)["train.jsonl"] != first["train.jsonl"]
    assert make_data(
        RELATIONS,
        tmp_path / "data",
        endpoint="https://query.example/sparql",
        cache=tmp_path / "cache.sqlite",
        per_relation=60,
    )
    assert content(tmp_path) == first, "offline, from the cache"


class Killed(BaseException):
    """The end of a process."""


@pytest.mark.parametrize("steps", [range(1, 14, 6), pytest.param(range(1, 14), marks=pytest.mark.whole)])
def test_a_run_that_is_killed_goes_on_and_writes_the_same_bytes(tmp_path: Path, steps: range) -> None:
    """It is stopped after some numbers of answers, and asks again only for what was on the way."""

    def stop(step: str, done: int, total: int | None, left: list[int]) -> None:
        left[0] -= 1
        if not left[0]:
            raise Killed

    with server() as stand_in:
        make(stand_in, tmp_path / "whole")
        whole, asked = content(tmp_path / "whole"), stand_in.served
        for at in steps:
            folder, left, before = tmp_path / str(at), [at], stand_in.served
            with pytest.raises(Killed):
                make(stand_in, folder, progress=lambda *call, left=left: stop(*call, left))
            assert not (folder / "data").exists()
            make(stand_in, folder)
            assert content(folder) == whole
            assert asked <= stand_in.served - before <= asked + 6


@pytest.mark.whole(but=["cut JSON"])
@pytest.mark.parametrize(
    "fault",
    [
        "429",
        "cut JSON",
        "half the rows",
        *(pytest.param(one, marks=pytest.mark.whole) for one in ("503", "cut short", "time-out")),
    ],
)
def test_a_fault_passes_and_one_that_stays_is_one_sentence_and_resumed(tmp_path: Path, fault: str) -> None:
    with server() as stand_in:
        make(stand_in, tmp_path / "whole")
        whole = content(tmp_path / "whole")
        stand_in.fault = lambda number, params: fault if number % 4 == 0 and "OFFSET" in params["query"] else None
        make(stand_in, tmp_path / "some")
        assert content(tmp_path / "some") == whole
        stand_in.fault = lambda _, params: fault if "a wdno:P571" in params["query"] else None
        with pytest.raises(LmkbcError, match="run the command again to go on") as caught:
            make(stand_in, tmp_path / "stays")
        assert not isinstance(caught.value, InputError)
        assert "\n" not in str(caught.value)
        assert not (tmp_path / "stays" / "data").exists()
        stand_in.fault, before = lambda *_: None, stand_in.served
        make(stand_in, tmp_path / "stays")
        assert content(tmp_path / "stays") == whole
        assert stand_in.served - before < len(stand_in.queries) / 3


def test_a_service_that_is_silent_or_refuses(tmp_path: Path) -> None:
    with server(fault=lambda *_: "silence") as stand_in:
        with pytest.raises(LmkbcError, match=r"no whole reply in 0\.3 s"):
            make(stand_in, tmp_path, waits={"patience": 0.0, "deadline": 0.3})
        stand_in.fault = lambda *_: "400"
        with pytest.raises(LmkbcError, match="HTTP 400"):
            make(stand_in, tmp_path)


def test_never_more_than_three_at_once_and_with_a_contact(tmp_path: Path) -> None:
    with server(delay=0.05) as stand_in:
        make(stand_in, tmp_path, per_relation=200)
    assert stand_in.most_at_once == 3
    assert all("User-Agent: lmkbc/" in head and CONTACT in head for head in stand_in.headers)
    with pytest.raises(InputError, match="LMKBC_CONTACT"):
        lmkbc.make_data("country-borders", tmp_path / "new")


@pytest.mark.parametrize(
    ("changed", "settings", "reason"),
    [
        ({"subject_type": EntityType("beetle", "Q22671")}, {}, r"0 usable subjects of class Q22671 \(beetle\)"),
        (
            {"subject_type": EntityType("tiny", "Q77")},
            {},
            r"3 usable subjects of class Q77 \(tiny\) with property P287",
        ),
        ({"subject_type": EntityType("thing", "Q35120")}, {}, "no class of subjects"),
        ({"property": "designer"}, {}, "no property of Wikidata"),
        ({}, {"per_relation": 3}, "per_relation is 3: give 9"),
        ({}, {"language": 'en") }'}, "language is"),
        ({}, {"language": "cy"}, r"0 usable subjects .*no label"),
    ],
)
def test_bad_input_is_one_sentence(tmp_path: Path, changed: Any, settings: Any, reason: str) -> None:
    few = [item(f"Q{600 + at}", f"Few {at}", {"P31": ["Q77"], "P287": ["Q2001"]}) for at in range(3)]
    with WikidataServer([*languages()[:90], *few]) as stand_in, pytest.raises(InputError, match=reason) as caught:
        make(stand_in, tmp_path, [replace(DESIGNERS, **changed)], **settings)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "data").exists()


def test_files_of_others_stay_and_offline_needs_the_cache(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "train.jsonl").write_text("mine")
    with server() as stand_in, pytest.raises(InputError, match="data"):
        make(stand_in, tmp_path)
    assert stand_in.served == 0
    with pytest.raises(LmkbcError, match=r"offline, and .* lacks 1 answer"):
        make_data([DESIGNERS], tmp_path / "new", cache=tmp_path / "cache.sqlite")


@pytest.mark.parametrize(
    ("row", "kind", "objects"),
    [
        ({"value": "1985-01-01T00:00:00Z", "precision": "8"}, "date", ["1980s"]),
        ({"value": "0476-09-04T00:00:00Z", "precision": "9"}, "date", ["476"]),
        ({"value": "_:b0"}, "string", None),
        ({"value": "http://www.wikidata.org/.well-known/genid/1"}, "string", None),
        ({"value": "https://x.org/"}, "string", ["https://x.org/"]),
        ({"value": "+1200", "unit": "http://www.wikidata.org/entity/Q41803"}, "number", ["1.2"]),
        ({"value": "+1200", "unit": "http://www.wikidata.org/entity/Q199"}, "number", None),
        ({"value": "-40.0", "unit": "http://www.wikidata.org/entity/Q11570"}, "number", ["-40"]),
        ({"value": "0", "unit": "http://www.wikidata.org/entity/Q11570"}, "number", ["0"]),
        ({"value": "many", "unit": "http://www.wikidata.org/entity/Q11570"}, "number", None),
        ({"value": "http://www.wikidata.org/entity/L7", "name": "lexeme"}, "entity", None),
        ({"value": "http://www.wikidata.org/entity/Q7", "nameMul": "Seven"}, "entity", ["Seven"]),
    ],
)
def test_values(row: Any, kind: Any, objects: list[str] | None) -> None:
    asked = relation(kind=kind, **({"unit": "kg", "unit_id": "Q11570"} if kind == "number" else {}))
    whole = {"subject": "http://www.wikidata.org/entity/Q1", "label": "One", "none": "false", **row}
    made, left_out = subjects([whole], asked)
    assert [value.names[0] for subject in made for value in subject.objects] == (objects or [])
    assert len(left_out) == (objects is None)
