"""Prompts from files and prompts that are searched: how they are read, what they answer, which tokens they may hold."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import tiny_masked
import torch

from lmkbc.errors import InputError
from lmkbc.models.masked.backbone import Backbone, load
from lmkbc.models.masked.clozes import MASK, SOFT, SUBJECT, subject_pieces
from lmkbc.models.masked.soft_prompts import SoftPrompt
from lmkbc.models.masked.tensors import masked
from lmkbc.probe.lama.dataset import RelationFacts
from lmkbc.probe.optiprompt.dataset import read_prompts
from lmkbc.probe.optiprompt.experiment import Experiment, ExperimentRunner
from lmkbc.train.clozes import cloze_logits, precision, search_prompt
from lmkbc.train.settings import TrainingPlan

pytestmark = pytest.mark.usefixtures("one_thread")
PLACES = ("Rome", "Paris", "Lima", "Oslo")
NAMES = tuple(f"{first}{last}" for first in "abcdefgh" for last in "stuv")
PAIRS = tuple((name, PLACES["stuv".index(name[1])]) for name in NAMES)
BORN = RelationFacts("P19", "{subject} was born in {mask} .", "N-1", PAIRS[28:], PAIRS[:24], PAIRS[24:28])


@pytest.fixture(scope="module")
def backbone(tmp_path_factory: pytest.TempPathFactory) -> Backbone:
    words = (*PLACES, *"was born died in Ada".split())
    return load(tiny_masked.save(tmp_path_factory.mktemp("tiny"), words), offline=True)


def rows(path: Path, *given: dict[str, object]) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in given))
    return path


def test_prompts_are_read_from_a_file_or_from_one_for_each_relation(tmp_path: Path) -> None:
    one = rows(tmp_path / "auto.jsonl", {"relation": "P19", "template": "[X]vik is {in} [Y]."})
    rows(
        tmp_path / "mined" / "P19.jsonl",
        {"template": "[Y] native [X]", "weight": 0.2},
        {"template": "[X] in [Y]", "weight": 0.8},
    )
    assert read_prompts([f"A={one}", f"L={tmp_path / 'mined'}"]) == {
        "A": {"P19": (("{subject}vik is {{in}} {mask}.", 1.0),)},
        "L": {"P19": (("{mask} native {subject}", 0.2), ("{subject} in {mask}", 0.8))},
    }


@pytest.mark.parametrize(
    ("name", "row", "said"),
    [
        ("manual", {"relation": "P19", "template": "[X] [Y]"}, "another way of asking"),
        ("A", {"template": "[X] [Y]"}, "needs a relation"),
        ("A", {"relation": "P19", "template": "[X] only"}, r"needs \[X\], \[Y\]"),
        ("", {}, "give NAME=FILE"),
    ],
)
def test_a_prompt_that_makes_no_sense_is_refused(tmp_path: Path, name: str, row: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        read_prompts([f"{name}={rows(tmp_path / 'p.jsonl', row)}"])


def test_clozes_of_a_relation_answer_together_by_weight(backbone: Backbone) -> None:
    clozes = (("{subject} was in {mask} .", 0.7), ("{mask} , {subject}", 0.3))
    plan = TrainingPlan(rate=1e-2, epochs=1)
    how = Experiment(
        soft=plan, finetune=plan, models=("pretrained",), methods=("manual",), prompts={"mine": {"P19": clozes}}
    )
    found = ExperimentRunner(backbone, [BORN], how).run()["P19"]["pretrained mine"]
    names = sorted(PLACES)
    columns = torch.tensor([backbone.tokenizer.convert_tokens_to_ids(name) for name in names])
    for (subject, _), answer in zip(BORN.facts, found, strict=True):
        logs = [
            weight * cloze_logits(backbone, masked(backbone, [cloze], [subject]), columns).log_softmax(-1)
            for cloze, weight in clozes
        ]
        assert answer == names[int(sum(logs, torch.zeros(1)).argmax())]
    with pytest.raises(InputError, match="prompts of mine ask nothing about P20"):
        ExperimentRunner(backbone, [RelationFacts("P20", BORN.cloze, "", PAIRS[:1], PAIRS[1:2], PAIRS[2:3])], how)


def test_a_searched_prompt_is_of_lower_case_tokens_and_more_steps_find_no_worse(backbone: Backbone) -> None:
    columns = torch.tensor([backbone.tokenizer.convert_tokens_to_ids(name) for name in PLACES])
    facts = [(name, [PLACES.index(place)]) for name, place in PAIRS]
    names, gold = [name for name, _ in facts[24:]], torch.tensor([right for _, (right,) in facts[24:]])

    def found(steps: int) -> tuple[SoftPrompt, list[int], float]:

        prompt, tokens = search_prompt(backbone, 3, facts[:24], columns, iterations=steps, seed=0, held_out=facts[24:])
        return prompt, tokens, precision(backbone, prompt, facts[24:], columns)

    prompt, tokens, share = found(9)
    pieces = backbone.tokenizer.convert_ids_to_tokens(tokens)
    assert not {*pieces} & {"[MASK]", "[SEP]"}
    assert not any(piece[0].isupper() for piece in pieces)
    assert share >= found(3)[2]
    assert found(9)[1] == tokens
    places = iter(tokens)
    layout = [next(places) if place == SOFT else place for place in prompt.layout]
    spelt = subject_pieces(prompt.layout, names, backbone.tokenizer)
    held = {MASK: [backbone.mask_id]}
    ids = [[one for at in layout for one in (name if at == SUBJECT else held.get(at, [at]))] for name in spelt]
    right = (cloze_logits(backbone, ids, columns).argmax(-1) == gold).float().mean().item()
    assert right == pytest.approx(share)
