"""BEAR: scores of whole sentences against one forward pass each, its averages, its floors and its files."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_causal
import torch
from command import Command
from rows import jsonl

from lmkbc import InputError
from lmkbc.masked.backbone import Backbone, load
from lmkbc.probe.bear import (
    BearItem,
    BearRelation,
    accuracy,
    floors,
    option_scores,
    parted,
    read_bear,
    scorer,
)
from lmkbc.probe.benchmark import BenchmarkRun
from lmkbc.probe.masked_answers import sentence_scores
from lmkbc.session.options import Servers, settled

TEMPLATES = ["the capital of [X] is [Y].", "[Y] is the capital of [X].", "[X] has {a} city, [Y]"]
CAPITALS = {"templates": TEMPLATES, "answer_space_labels": ["paris", "rome", "new york"]}
ITEMS = [("france", 0), ("italy", 1), ("iceland", 1), ("peru", 2)]
COUNTS = {"templates": TEMPLATES, "answer_space_labels": ["oslo", "lima"]}


def bear(root: Path, **changes: Any) -> Path:
    (root / "BEAR").mkdir(parents=True, exist_ok=True)
    metadata = {"P36": CAPITALS, "P1": COUNTS} | changes
    (root / "BEAR" / "metadata_relations.json").write_text(json.dumps(metadata))
    (root / "relation_info.json").write_text('{"P36": {"domains": ["Geographic", "Political"]}, "P1": {"domains": []}}')
    for name, items in (("P36", ITEMS), ("P1", [("norway", 0), ("peru", 1)])):
        jsonl(root / "BEAR" / f"{name}.jsonl", [{"sub_label": one, "answer_idx": at} for one, at in items])
    return root


def test_files_are_read_and_refused(tmp_path: Path) -> None:
    counts, capitals = read_bear(bear(tmp_path))
    assert (counts.name, counts.cardinality, counts.domains) == ("P1", "one item an option", ())
    assert (capitals.cardinality, capitals.domains) == ("several items an option", ("Geographic", "Political"))
    assert capitals.sentence(capitals.clozes[2], "peru", "rome") == "Peru has {a} city, rome"
    assert (capitals.places(2), capitals.places(9), capitals.places(None)) == ([0, 2], [0, 1, 2, 3], [0, 1, 2, 3])
    assert [one.name for one in read_bear(tmp_path, ["P36"])] == ["P36"]
    for names, changes, message in (
        (["P99"], {}, "no items of P99"),
        (["P1"], {"P1": COUNTS | {"answer_space_labels": ["oslo"]}}, "items of P1 do not fit its options"),
        (["P1"], {"P1": COUNTS | {"templates": ["[X] is.", *TEMPLATES[1:]]}}, r"P1 needs \[X\], \[Y\]"),
        (None, {"P1": COUNTS | {"templates": TEMPLATES[:1]}}, "metadata cannot be read .* of length 3"),
    ):
        with pytest.raises(InputError, match=message):
            read_bear(bear(tmp_path, **changes), names)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no items of any relation"):
        read_bear(tmp_path / "empty")


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_a_sentence_has_the_log_likelihood_that_one_forward_pass_gives(tmp_path: Path, kind: str) -> None:
    (relation,) = read_bear(bear(tmp_path / "data"), ["P36"])
    score = scorer(str(tiny_causal.save(tmp_path / kind, kind)), run(tmp_path))
    model, tokenizer = tiny_causal.model(kind), tiny_causal.tokenizer()

    def alone(sentence: str) -> float:
        ids = [tiny_causal.EOS, *tokenizer(sentence)["input_ids"]]
        with torch.inference_mode():
            logs = model(torch.tensor([ids])).logits[0].log_softmax(-1)
        return sum(float(logs[at - 1, token]) for at, token in enumerate(ids) if at)

    for cloze in relation.clozes:
        found = option_scores(relation, cloze, [0, 3], score)
        asked = [ITEMS[0][0], ITEMS[3][0]]
        wanted = [[alone(relation.sentence(cloze, one, option)) for option in relation.options] for one in asked]
        assert found == pytest.approx(np.array(wanted), abs=1e-3)


@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_pseudo_log_likelihood_masks_the_rest_of_a_word(save_model: Callable[..., Path], family: str) -> None:
    backbone = load(save_model(family), offline=True)
    groups = [["Iceland is in peru.", "Norway is in Zürich"], ["Iceland is in rome.", "the city " * 30]]
    (first, second), (third, long) = sentence_scores(backbone, groups)
    assert [first, second, third] == pytest.approx(
        [literal(backbone, text) for text in (*groups[0], groups[1][0])], abs=1e-4
    )
    assert long == -np.inf


def literal(backbone: Backbone, text: str) -> float:
    encoded = backbone.tokenizer(text)
    ids, words, total = encoded["input_ids"], encoded.word_ids(), 0.0
    for at, word in enumerate(words):
        if word is not None:
            hidden = [backbone.mask_id if here >= at and words[here] == word else one for here, one in enumerate(ids)]
            with torch.inference_mode():
                logs = backbone.model(input_ids=torch.tensor([hidden])).logits[0, at].log_softmax(-1)
            total += float(logs[ids[at]])
    return total


def test_averages_are_over_items_then_over_templates(tmp_path: Path) -> None:
    right = [
        np.array([[True, True, False, False], [True, True, True, True]]),
        np.array([[False, False], [False, True]]),
    ]
    found = accuracy(right, [np.full((3, 4), 0.5), np.zeros((3, 2))])
    assert found["templates"] == pytest.approx([2 / 6, 5 / 6])
    assert (found["accuracy"], found["error"]) == (pytest.approx(7 / 12), pytest.approx(0.25))
    assert (found["chance"], found["items"]) == (pytest.approx(1 / 3), 6)
    assert accuracy([right[0][:1]], [np.zeros((3, 4))])["error"] is None
    relations = read_bear(bear(tmp_path))
    assert parted(relations, "domain", "m") == {"Geographic": ["P36"], "Political": ["P36"]}
    assert parted(relations, "cardinality", "m") == {"one item an option": ["P1"], "several items an option": ["P36"]}
    assert parted(relations, "overall", "m") == {"m": ["P1", "P36"]}


def test_floors_learn_from_other_items() -> None:
    items = [BearItem(f"saint {n}", 0) for n in range(30)] + [BearItem(f"mount {n}", 1) for n in range(20)]
    found = floors(BearRelation("P1", (), ("a", "b"), tuple(items)), range(50))
    assert found.tolist() == [[0.5] * 50, [1.0] * 30 + [0.0] * 20, [1.0] * 50]
    alone = [BearItem(f"saint {n}", n) for n in range(20)]
    own = floors(BearRelation("P1", (), tuple(map(str, range(20))), tuple(alone)), range(20))
    assert own[1:].sum() == 0


def test_bear_as_a_user_reads_it(tmp_path: Path, save_model: Callable[..., Path], command: Command) -> None:
    source = bear(tmp_path / "data")
    words = ("probe", "bear", source, "--model", save_model(), "--table", "overall,domain,cardinality")
    printed, told = command.done(*words)
    assert "48 sentences of 2 relations in" in told
    for shown in ("published: SmolLM2-135M", "Political", "one item an option", "naive Bayes %"):
        assert shown in printed
    found = json.loads(command.done(*words, "--properties", "P36", "--limit", 2, "--json")[0])
    assert [one["items"] for one in found["overall"].values()] == [2]
    assert "no table of this benchmark" in command.fails(*words[:-1], "years")


def run(folder: Path) -> BenchmarkRun:
    return BenchmarkRun(offline=True, servers=settled(Servers, {"store": folder / "s.sqlite"}))
