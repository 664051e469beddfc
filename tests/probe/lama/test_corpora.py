"""LAMA's corpora besides T-REx: which facts are read, and that a masked sentence is asked as it stands."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import tiny_masked
import torch
from command import Command

from lmkbc.errors import InputError
from lmkbc.models.masked.backbone import load
from lmkbc.probe.lama.dataset import read_corpus
from lmkbc.probe.lama.ranks import MaskedRanks


def write(path: Path, *rows: dict[str, object]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def squad(root: Path) -> Path:
    rows = [
        {"masked_sentences": ["Ada {met} [MASK] in Rome."], "obj_label": "Jean", "sub_label": "Squad", "id": "1"},
        {"masked_sentences": ["[MASK] was in Rome."], "obj_label": "Ada", "sub_label": "Squad", "id": "2"},
        {"masked_sentences": ["[MASK] met [MASK]."], "obj_label": "Ada", "sub_label": "Squad", "id": "3"},
        {"masked_sentences": ["so " * 100 + "[MASK]."], "obj_label": "Ada", "sub_label": "Squad", "id": "4"},
    ]
    write(root / "Squad" / "test.jsonl", *rows)
    return root


def test_google_re_leaves_out_what_annotators_deny(tmp_path: Path) -> None:
    yes, no = {"rater": "1", "judgment": "yes"}, {"rater": "2", "judgment": "no"}
    rows = [
        {"sub_label": "Ada Rossi", "obj_label": "Rome", "judgments": [yes, no], "masked_sentences": ["x"]},
        {"sub_label": "Jean Roux", "obj_label": "Paris", "judgments": [no, no, yes], "masked_sentences": ["x"]},
        {"sub_label": "Ada Rossi", "obj_label": "Rome", "judgments": [yes], "masked_sentences": ["y"]},
    ]
    write(tmp_path / "Google_RE" / "place_of_birth_test.jsonl", *rows)
    (born,) = read_corpus(tmp_path, "google-re", ["place_of_birth"])
    assert (born.cloze, born.facts) == ("{subject} was born in {mask} .", (("Ada Rossi", "Rome"),))
    with pytest.raises(InputError, match="no relation 'birth'"):
        read_corpus(tmp_path, "google-re", ["birth"])


def test_a_sentence_is_asked_as_it_stands(tmp_path: Path) -> None:
    backbone = load(tiny_masked.save(tmp_path / "m", "Ada Jean Rome was in met".split()), offline=True)
    (asked,) = read_corpus(squad(tmp_path), "squad")
    assert [gold for _, gold in asked.facts] == ["Jean", "Ada"]
    names = ["Ada", "Jean", "Rome"]
    columns = backbone.tokenizer.convert_tokens_to_ids(names)
    for (sentence, gold), (rank, log) in zip(asked.facts, MaskedRanks(backbone, names).ranks(asked), strict=True):
        text = backbone.tokenizer(sentence, return_tensors="pt")
        with torch.inference_mode():
            logits = backbone.model(**text).logits[0]
        logs = logits[text["input_ids"][0] == backbone.mask_id][0, columns].log_softmax(-1)
        assert log == pytest.approx(float(logs[names.index(gold)]), abs=1e-4)
        assert rank == int((logs > logs[names.index(gold)]).sum()) + 1


def test_the_command_asks_a_corpus(command: Command, tmp_path: Path) -> None:
    run = command.under("probe", "lama", squad(tmp_path), "--corpus")
    model = tiny_masked.save(tmp_path / "m", "Ada Jean Rome was in met".split())
    shown, told = run.done("squad", "--model", model)
    assert "2 facts of 1 relation" in told
    assert "paper" not in shown
    assert "--corpus is 'SQuAD'" in run.fails("SQuAD", "--model", model)
    assert "holds sentences" in run.fails("squad", "--model", model, "--uhn")
    assert "not parted into relations" in run.fails("squad", "--model", model, "--properties", "P19")
