"""The commands as a user runs them: tables, JSON, files, and one sentence for bad input."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from lmkbc.cli import main

SCHEMA = """
[relations.in]
name = "in"
templates = ["{subject} is in {object}.", "{object} holds {subject}."]
topic = "places"
transitive = true
"""


def lmkbc(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["lmkbc", *map(str, arguments)])
    with pytest.raises(SystemExit) as stopped:
        main()
    return int(stopped.value.code or 0)


def test_kmir_from_triples_to_scores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    triples, schema, out = tmp_path / "t.tsv", tmp_path / "s.toml", tmp_path / "out"
    triples.write_text("".join(f"a{i}\tin\tb{i % 5}\nb{i % 5}\tin\tc\n" for i in range(20)))
    schema.write_text(SCHEMA)
    assert lmkbc(monkeypatch, "probe", "kmir", "build", triples, "--schema", schema, "--out", out, "--json") == 0
    assert json.loads(capsys.readouterr().out)["reasoning"] == 20
    questions = [json.loads(line) for line in (out / "train.jsonl").read_text().splitlines()]
    answers = tmp_path / "answers.jsonl"
    answers.write_text("".join(json.dumps({"id": q["id"], "ret": q["answer"]}) + "\n" for q in questions))
    assert lmkbc(monkeypatch, "probe", "kmir", "score", out / "train.jsonl", answers, "--json") == 0
    table: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (table["f1"], table["robustness"]["every"]) == (1.0, 1.0)
    assert lmkbc(monkeypatch, "probe", "kmir", "score", out / "train.jsonl", answers) == 0
    assert "RoBERTa" in capsys.readouterr().out
    answers.write_text('{"id": "other", "ret": ""}')
    assert lmkbc(monkeypatch, "probe", "kmir", "score", out / "train.jsonl", answers) == 2
    assert "is no question's id" in capsys.readouterr().err
    schema.write_text(SCHEMA + "symmetric = true\nasymmetric = true\n")
    assert lmkbc(monkeypatch, "probe", "kmir", "build", triples, "--schema", schema, "--out", out) == 2
    assert "asymmetric" in capsys.readouterr().err


def test_controls(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    command = ("probe", "controls", "--edition", "mini", "--system", "prior", "--no-tune", "--offline")
    assert lmkbc(monkeypatch, *command, "--json") == 0
    assert json.loads(capsys.readouterr().out)["system"] == "prior"
    assert lmkbc(monkeypatch, *command) == 0
    printed = capsys.readouterr().out
    assert "naive-bayes" in printed
    assert "*** Average ***" in printed


def test_bad_input_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert lmkbc(monkeypatch, "probe", "kamel", tmp_path, "--model", "none") == 2
    assert "does not hold KAMEL's files" in capsys.readouterr().err
    assert lmkbc(monkeypatch, "probe", "kamel", tmp_path, "--model", "none", "--split", "train") == 2
    assert "--split is 'train'" in capsys.readouterr().err
    assert lmkbc(monkeypatch, "probe", "lama", tmp_path, "--model", "none") == 2
    assert capsys.readouterr().err.count("\n") == 1
