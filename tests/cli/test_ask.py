"""`lmkbc ask`: one question, answered as `predict` answers a split's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command import Command

import lmkbc

RELATION = "CountryBordersCountry"


def completions(folder: Path, *texts: str) -> Path:
    path = folder / "said.jsonl"
    row = {"SubjectEntity": "Atlantis", "Relation": RELATION, "model": "some-model", "completions": list(texts)}
    path.write_text(json.dumps(row) + "\n")
    return path


def test_the_answer_its_links_and_what_the_model_wrote(command: Command, tmp_path: Path) -> None:
    said = completions(tmp_path, "Chile, Peru", "Chile")
    shown, told = command.done(
        "ask", "Atlantis", "country-borders", "--edition", "mini", "--from", said, "--offline", "--untuned"
    )
    chile = next(line.split() for line in shown.splitlines() if "Chile" in line)
    assert chile[:3] == ["*", "Chile", "Q298"]
    assert "train, as an object of the relation" in shown
    assert f"Atlantis, {RELATION}: Chile" in told
    assert "the model wrote" not in told  # these answers were given, not asked for


def test_a_question_is_answered_as_in_a_run(tmp_path: Path) -> None:
    run = lmkbc.predict(edition="mini", split="val", system="prior", out=tmp_path / "run", relation=RELATION, limit=1)
    subject, _, objects = run.predictions.row(0)
    answer = lmkbc.ask(subject, "country-borders", edition="mini", system="prior")
    assert [one.id for one in answer.kept] == objects
    assert (answer.relation, answer.edition, answer.system) == (RELATION, "mini", "prior")
    assert [one.kept for one in answer.objects] == sorted((one.kept for one in answer.objects), reverse=True)
    assert len(answer) == len(list(answer))
    assert subject in answer._repr_html_()


def test_an_empty_answer_is_an_answer_and_a_missing_one_is_a_failure(command: Command, tmp_path: Path) -> None:
    options = ("--edition", "mini", "--offline", "--untuned", "--from")
    shown, told = command.done("ask", "Atlantis", RELATION, *options, completions(tmp_path, "None"))
    assert f"Atlantis, {RELATION}: nothing" in told
    assert shown == ""
    told = command.fails("ask", "Atlantis", RELATION, *options, completions(tmp_path, "-"), status=1)
    assert "gave no usable answer about 'Atlantis' (unparsed)" in told


@pytest.mark.parametrize("given", ["Q419", "https://www.wikidata.org/wiki/Q419"])
def test_a_subject_s_id_is_a_qid(command: Command, given: str) -> None:
    command.done("ask", "Peru", "country-borders", "-e", "mini", "--system", "prior", "--subject-id", given)
