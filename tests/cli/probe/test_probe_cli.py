"""The commands as a user runs them: tables, JSON, files, and one sentence for bad input."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import tiny_causal
import tiny_masked
from transformers import T5Config, T5ForConditionalGeneration

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
    printed = capsys.readouterr()
    assert 0 < json.loads(printed.out)["reasoning"] <= 20
    assert "that two splits would share are left out" in printed.err
    questions = [json.loads(line) for line in (out / "train.jsonl").read_text().splitlines()]
    answers = tmp_path / "answers.jsonl"
    answers.write_text("".join(json.dumps({"id": q["id"], "ret": q["answer"]}) + "\n" for q in questions))
    assert lmkbc(monkeypatch, "probe", "kmir", "score", out / "train.jsonl", answers, "--json") == 0
    table: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (table["f1"], table["robustness"]["every"]) == (1.0, 1.0)
    assert lmkbc(monkeypatch, "probe", "kmir", "score", out / "train.jsonl", answers) == 0
    shown = capsys.readouterr().out
    assert "paper: RoBERTa" in shown
    counts = next(line.split() for line in shown.splitlines() if line.startswith("questions "))
    assert int(counts[-1]) == len(questions) == sum(int(count) for count in counts[1:-1])
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
    assert "F1, LM-KBC mini, val, untuned" in printed
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


def capitals(root: Path, broken: str = "") -> Path:
    folder = root / "KAMEL" / "P36"
    folder.mkdir(parents=True)
    for split in ("train", "test"):
        rows = [json.dumps({"sub_label": f"{split} {n}", "obj_label": [f"{split} town {n}"]}) for n in range(8)]
        (folder / f"{split}.jsonl").write_text("\n".join([broken, *rows] if broken else rows))
    return root / "KAMEL"


def test_kamel_as_a_user_reads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source = capitals(tmp_path, broken='{"sub_label": "x", "obj_label": [}')
    tiny_causal.model("gpt2").save_pretrained(tmp_path / "gpt2")
    tiny_causal.tokenizer().save_pretrained(tmp_path / "gpt2")
    templates = tmp_path / "templates.csv"
    templates.write_text("P36,What rules [S]?\n")
    command = ["probe", "kamel", source, "--model", tmp_path / "gpt2", "--shots", 1, "--limit", 3]
    command += ["--templates", templates, "--store", tmp_path / "s.sqlite", "--out", tmp_path / "out.jsonl"]
    assert lmkbc(monkeypatch, *command) == 0
    printed = capsys.readouterr()
    assert printed.err.count("skipped P36/") == 2
    assert "1 random shots: 3 queries of 1 properties, test" in printed.err
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 3
    for shown in (
        "published, labels only",
        "stripped, labels only",
        "by number of gold answers",
        "LAMA's",
        "literals",
        "paper: OPT-13b, 10 shots, labels only",
        "paper: majority object",
        "naive Bayes of train",
        "what no control answers",
    ):
        assert shown in printed.out
    assert lmkbc(monkeypatch, *command, "--json") == 0
    tables = json.loads(capsys.readouterr().out)
    assert set(tables) > {f"{way}{labels}" for way in ("published", "stripped") for labels in ("", ", labels only")}
    assert tables["majority of train"]["overall"]["count"] == 1
    assert (tables["stripped"]["kinds"], tables["stripped"]["properties"]["P36"]["count"]) == ({"P36": "entity"}, 3)


def test_kamel_refuses_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source, templates = capitals(tmp_path), tmp_path / "templates.csv"
    templates.write_text("P47,What borders [S]?\n")
    config = T5Config(vocab_size=100, d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2)
    T5ForConditionalGeneration(config).save_pretrained(tmp_path / "t5")
    tiny_masked.save(tmp_path / "bert")
    capsys.readouterr()
    for arguments, message in (
        (("--model", tmp_path / "bert"), "is of type BertForMaskedLM, which does not continue a text"),
        (("--model", tmp_path / "t5"), "is of type encoder-decoder, which does not continue a text"),
        (("--model", tmp_path / "none"), "is no model directory"),
        (("--model", "x", "--templates", templates), "P36 has no question template"),
        (("--model", "x", "--properties", "P36,P9999"), "KAMEL has no test split of 'P9999'"),
        (("--model", "x", "--split", "dev"), "no dev split of 'P36'"),
        (("--model", tmp_path / "bert", "--shots", "9"), "too few for 9 shots"),
    ):
        assert lmkbc(monkeypatch, "probe", "kamel", source, *arguments) == 2
        told = capsys.readouterr().err
        assert (message in told, told.count("\n")) == (True, 1), told


def test_kmir_refuses_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    triples, schema, out = tmp_path / "t.tsv", tmp_path / "s.toml", tmp_path / "out"
    table = SCHEMA.replace("[relations.in]", "[relations.{name}]")
    for rows, written, message in (
        ("a\tinn\tb\n", SCHEMA, "triple 1: the schema lacks relation 'inn'; did you mean 'in'"),
        ("a\tin\tb\nc\tin\tb\n", SCHEMA, "no statement of 'in' can be made false"),
        ("a\tin\tb\n", SCHEMA.replace("templates = [", 'templates = []\naspect = "x" # ['), "has no templates"),
        (
            "a\tin\tb\n",
            SCHEMA + 'symmetric = true\ninverse = ["on"]\n' + table.replace("{name}", "on"),
            "its own inverse",
        ),
        ("a\tin\tb\n", SCHEMA + 'asymmetric = true\ninverse = ["in"]\n', "'in' is asymmetric"),
    ):
        triples.write_text(rows)
        schema.write_text(written)
        assert lmkbc(monkeypatch, "probe", "kmir", "build", triples, "--schema", schema, "--out", out) == 2
        told = capsys.readouterr().err
        assert (message in told, told.count("\n")) == (True, 1), told
        assert not out.exists()
