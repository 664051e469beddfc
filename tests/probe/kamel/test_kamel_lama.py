"""LAMA's facts, asked as KAMEL's questions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lmkbc.errors import InputError
from lmkbc.probe.kamel.benchmark import KAMELS, LAMAS, by_facts, lama_questions, lama_tables
from lmkbc.probe.kamel.dataset import Kamel, KamelAnswer, KamelFact

CAPITALS = (KamelFact("P36", "Peru", (KamelAnswer("Lima"), KamelAnswer("Cusco"))),)
DATA = Kamel({("P36", "train"): CAPITALS, ("P36", "test"): CAPITALS, ("P50", "train"): (), ("P50", "test"): ()})


def lama(root: Path) -> Path:
    """Write LAMA's layout: one relation of both benchmarks, one that KAMEL lacks, one of KAMEL that LAMA lacks."""
    (root / "TREx").mkdir(parents=True)
    rows = [{"relation": name, "template": "[X] is [Y] .", "type": "N-1"} for name in ("P36", "P530", "P50")]
    (root / "relations.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for name in ("P36", "P530", "P50"):
        facts = [{"sub_label": subject, "obj_label": object_} for subject, object_ in (("France", "Paris"), ("X", "Y"))]
        (root / "TREx" / f"{name}.jsonl").write_text("".join(json.dumps(fact) + "\n" for fact in facts))
    return root


def test_facts_of_the_shared_relations_with_examples_of_kamel_or_of_autoprompt(tmp_path: Path) -> None:
    found = lama_questions(lama(tmp_path), DATA)
    assert found.properties == ["P36"]
    assert found.of("P36", "test")[0] == KamelFact("P36", "France", (KamelAnswer("Paris"),))
    assert found.of("P36", "train") == CAPITALS
    (tmp_path / "P36").mkdir()
    (tmp_path / "P36" / "train.jsonl").write_text('{"sub_label": "Chile", "obj_label": "Santiago"}')
    (example,) = lama_questions(tmp_path, DATA, tmp_path).of("P36", "train")
    assert (example.subject, example.objects) == ("Chile", (KamelAnswer("Santiago"),))
    with pytest.raises(InputError):
        lama_questions(tmp_path / "TREx", DATA)


def test_both_halves_are_scored_alike() -> None:
    kamels = [(CAPITALS[0], "Lima%")]
    lamas = [(KamelFact("P36", "France", (KamelAnswer("Paris"),)), text) for text in (" Paris%", "Rome")]
    sheet = by_facts(lama_tables(kamels, lamas))
    own, other, *paper = [list(row) for row in sheet.rows]
    assert own[:4] == [KAMELS, 100.0, 50.0, pytest.approx(100 * 2 / 3)]
    assert (other[0], other[3], other[5], other[6:]) == (LAMAS, 0.0, 50.0, [2, 1])  # the published split keeps spaces
    assert [row[3] for row in paper] == [23.99, 52.9]
    assert list(lama_tables(kamels, [])) == [KAMELS]
