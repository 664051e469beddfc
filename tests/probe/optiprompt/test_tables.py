"""Tables made of answers: what they count, what the paper's figures stand beside, and what the command writes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import tiny_masked
from command import Command

from lmkbc.probe.lama.dataset import RelationFacts
from lmkbc.probe.optiprompt import tables

BORN = RelationFacts("P19", "{subject} was born in {mask} .", "N-1", (("a", "Rome"), ("b", "Oslo")))
CAPITAL = RelationFacts("P36", "{subject} has {mask} .", "1-1", tuple((name, "Lima") for name in "cdef"))
ANSWERS = {
    "P19": {
        "majority": ["Rome", "Rome"],
        "naive-bayes": ["Rome", "Lima"],
        "pretrained manual": ["Lima", "Oslo"],
        "pretrained finetune": ["Rome", "Oslo"],
        "random finetune": ["Rome", "Rome"],
    },
    "P36": {
        "majority": ["Oslo"] * 4,
        "naive-bayes": ["Oslo"] * 4,
        "pretrained manual": ["Lima", "Oslo", "Oslo", "Oslo"],
        "pretrained finetune": ["Lima", "Oslo", "Oslo", "Oslo"],
        "random finetune": ["Oslo", "Oslo", "Oslo", "Lima"],
    },
}


def test_shares_of_the_majority_object_are_means_over_relations() -> None:
    shares = tables.majority_shares([BORN, CAPITAL], ANSWERS)
    assert "majority" not in shares
    assert shares["gold objects"] == pytest.approx((1 / 2 + 0) / 2)
    assert shares["pretrained manual"] == pytest.approx((0 + 3 / 4) / 2)
    assert shares["random finetune"] == pytest.approx((1 + 3 / 4) / 2)
    sheet = tables.majority_share([BORN, CAPITAL], ANSWERS)
    assert sheet.picture is not None
    assert "random finetune" in sheet.picture().svg


def test_relations_stand_beside_what_the_paper_reports() -> None:
    sheet = tables.by_relation([BORN, CAPITAL], ANSWERS)
    rows = [dict(zip(sheet.heads, row, strict=True)) for row in sheet.rows]
    assert [(row["P@1 %"], row["facts"], row["pretrained manual"]) for row in rows] == [("P19", 2, 50), ("P36", 4, 25)]
    assert [(row["paper: manual"], row["paper: soft-manual"]) for row in rows] == [(21.1, 20.6), (62.1, 61.3)]


def test_facts_are_shown_where_ways_of_asking_differ() -> None:
    rows = list(tables.fact_rows([BORN, CAPITAL], ANSWERS))
    assert [row.easy for row in rows] == [True, False, False, False, False, True]
    sheet = tables.facts(rows)
    assert sheet.heads[4:] == ["pretrained manual", "pretrained finetune"]
    assert [list(row) for row in sheet.rows] == [["P19", "a", "Rome", "easy", "Lima", "Rome"]]


def lama(tmp_path: Path) -> list[object]:
    """Write one relation with four train facts; return what the command needs to read it."""
    (tmp_path / "TREx").mkdir(parents=True)
    (tmp_path / "relations.jsonl").write_text('{"relation": "P19", "template": "[X] was born in [Y] .", "type": "N-1"}')
    for path, names in (("TREx/P19", "abc"), ("train/P19/train", "defg"), ("train/P19/dev", "h")):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        rows = [
            {"sub_label": name, "obj_label": place}
            for name, place in zip(names, ("Rome", "Paris", "Oslo", "Rome"), strict=False)
        ]
        (tmp_path / f"{path}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    arguments = ["probe", "optiprompt", tmp_path, "--train", tmp_path / "train", "--least", 2]
    return [*arguments, "--models", "pretrained", "--methods", "manual"]


def test_the_command_prints_the_tables_and_writes_facts_and_figures(command: Command, tmp_path: Path) -> None:
    model = tiny_masked.save(tmp_path / "m", ["Rome", "Paris", "was", "born", "in"])
    arguments = [*lama(tmp_path), "--model", model, "--table", "by-relation,majority-share,facts"]
    shown, _ = command.done(*arguments, "--facts", tmp_path / "facts.jsonl", "--pictures", tmp_path / "svg")
    assert "P@1 by relation" in shown
    assert "majority object %" in shown
    assert "some ways of asking answer, 0 of 0" in shown
    assert (tmp_path / "svg" / "majority-share.svg").is_file()
    rows = [json.loads(line) for line in (tmp_path / "facts.jsonl").read_text().splitlines()]
    assert [(row["subject"], row["object"]) for row in rows] == [("a", "Rome"), ("b", "Paris")]
    assert set(rows[0]["answers"]) == {"majority", "naive-bayes", "pretrained manual"}


def test_several_models_are_asked_the_facts_whose_objects_are_tokens_of_all(command: Command, tmp_path: Path) -> None:
    first = tiny_masked.save(tmp_path / "first", ["Rome", "Paris", "Oslo"])
    second = tiny_masked.save(tmp_path / "second", ["Rome", "Paris"], seed=3)
    arguments = [*lama(tmp_path), "--model", first, "--model", second, "--facts", tmp_path / "facts.jsonl"]
    shown, told = command.done(*arguments)
    assert "1 relation, 2 facts" in told
    assert f"{second}  pretrained manual" in shown
    assert "paper: BERT-large" in shown
    tables_of = json.loads(command.done(*arguments, "--json")[0])
    assert set(tables_of) == {str(first), str(second)}
    alone = json.loads(command.done(*lama(tmp_path / "again"), "--model", first, "--json")[0])
    assert alone["majority"]["overall"] == pytest.approx(1 / 3)
    assert tables_of[str(first)]["majority"]["overall"] == pytest.approx(1 / 2)
