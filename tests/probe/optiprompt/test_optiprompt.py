import json
import re
from pathlib import Path

import pytest
import tiny_masked
import torch
from command import Command
from rows import jsonl

from lmkbc import InputError
from lmkbc.masked.backbone import Backbone, load, subject_pieces
from lmkbc.masked.forward import masked
from lmkbc.masked.soft_prompts import SoftPrompt
from lmkbc.probe.lama.lama_data import RelationFacts
from lmkbc.probe.optiprompt.experiment import Experiment, ExperimentRunner, learnable, read_facts, read_prompts
from lmkbc.probe.optiprompt.optiprompt import by_relation, differing_facts, fact_rows, majority_share, method_scores
from lmkbc.train.cloze_training import cloze_logits, precision, search_prompt
from lmkbc.train.training import TrainingPlan

pytestmark = pytest.mark.usefixtures("one_thread")
PLACES = ("Rome", "Paris", "Lima", "Oslo")
NAMES = tuple(f"{first}{last}" for first in "abcdefgh" for last in "stuv")
PAIRS = tuple((name, PLACES["stuv".index(name[1])]) for name in NAMES)
BORN = RelationFacts("P19", "{subject} was born in {mask} .", "N-1", PAIRS[28:], PAIRS[:24], PAIRS[24:28])
DIED = RelationFacts(
    "P20", "{subject} died in {mask} .", "N-M", (("ax", "Rome"), ("bs", "Oslo")), PAIRS[:24], PAIRS[24:28]
)
HOW = Experiment(
    soft=TrainingPlan(rate=3e-2, epochs=2, batch=8),
    finetune=TrainingPlan(rate=1e-2, epochs=20, batch=8),
    methods=("manual", "soft-3", "finetune"),
)


@pytest.fixture(scope="module")
def backbone(tmp_path_factory: pytest.TempPathFactory) -> Backbone:
    words = (*PLACES, *"was born died in".split())
    return load(tiny_masked.save(tmp_path_factory.mktemp("tiny"), words), offline=True)


def test_a_table_is_averaged_over_relations_and_split_by_what_controls_answer() -> None:
    gold = [place for _, place in BORN.facts]
    rows = {
        "majority": ["Rome"] * 4,
        "naive-bayes": [gold[0], "", "", ""],
        "random finetune": ["", gold[1], "", ""],
        "pretrained manual": [gold[0], "x", gold[2], "x"],
    }
    other = {row: ["Rome", "Oslo"] for row in rows} | {"naive-bayes": ["Rome", ""], "random finetune": ["", ""]}
    found = method_scores([BORN, DIED], fact_rows([BORN, DIED], {"P19": rows, "P20": other}))
    line = found["pretrained manual"]
    assert line.overall == pytest.approx((2 / 4 + 1) / 2)
    assert line.types == {"N-1": 0.5, "N-M": 1.0}
    assert line.easy == pytest.approx((1 / 2 + 1) / 2)
    assert line.hard == pytest.approx((1 / 2 + 1) / 2)
    assert found["naive-bayes"].hard == 0
    unhelped = {("P19", BORN.facts[1][0])}
    assert line.uhn is None
    assert method_scores([BORN], fact_rows([BORN], {"P19": rows}), unhelped)["pretrained manual"].uhn == 0.0


def test_objects_that_no_train_fact_names_are_left_out() -> None:
    facts = RelationFacts(
        "P1", BORN.cloze, "", (("y", "Paris"), ("z", "Kyiv"), ("w", "Lima")), PAIRS[:8], (("x", "Rome"),)
    )
    (kept,) = learnable([facts], lambda name: name != "Lima", least=3, most=3)
    assert kept.facts == (("y", "Paris"),)
    assert kept.train == tuple(pair for pair in PAIRS[:8] if pair[1] != "Lima")[:3]
    with pytest.raises(InputError, match="no relation keeps 99 facts"):
        learnable([facts], lambda _: True, least=99, most=100)


def test_no_subject_that_is_tested_on_is_learned_or_stopped_by(caplog: pytest.LogCaptureFixture) -> None:
    train, dev = (*PAIRS[:8], ("AS", "Rome")), (("z", "Rome"), ("a.s.", "Rome"))
    facts = RelationFacts("P1", BORN.cloze, "", (("as", "Rome"), ("x", "Paris")), train, dev)
    (kept,) = learnable([facts], lambda _: True, least=3, most=99)
    assert {subject for subject, _ in kept.train} == {subject for subject, _ in PAIRS[1:8]}
    assert kept.dev == (("z", "Rome"), ("a.s.", "Rome"))
    caplog.set_level("INFO", logger="lmkbc")
    assert learnable([facts, DIED], lambda _: True, least=8, most=99)[0].name == "P20"
    assert "left out, with fewer than 8 facts to learn or too few to test: P1" in caplog.text


@pytest.mark.whole
def test_prompts_and_weights_learn_and_a_killed_run_goes_on(backbone: Backbone, tmp_path: Path) -> None:
    kept = tmp_path / "kept.jsonl"
    before = {name: value.clone() for name, value in backbone.model.state_dict().items()}
    first = ExperimentRunner(backbone, [BORN, DIED], HOW).run(kept)
    assert all(torch.equal(value, before[name]) for name, value in backbone.model.state_dict().items())
    assert set(first["P19"]) == {"majority", "naive-bayes"} | {
        f"{model} {method}" for model in HOW.models for method in HOW.methods
    }
    gold = [place for _, place in BORN.facts]
    assert first["P19"]["pretrained finetune"] == gold != first["P19"]["pretrained manual"]
    lines = kept.read_bytes().splitlines(keepends=True)
    kept.write_bytes(lines[0])
    asked: list[str] = []
    again = ExperimentRunner(backbone, [BORN, DIED], HOW).run(kept, lambda step, done, total: asked.append(step))
    assert again == first
    assert kept.read_bytes() == b"".join(lines)
    assert not any(step.startswith("P19") for step in asked)


def test_facts_that_names_tell_are_known_by_the_models_own_tokens(
    backbone: Backbone, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model that reads no capitals has no word "Rome", but a token for it."""
    monkeypatch.setattr("lmkbc.probe.masked_answers.known_words", lambda _: {})
    told = RelationFacts("P36", BORN.cloze, "1-1", (("City of Rome", "Rome"), ("ax", "Paris")), PAIRS[:1], PAIRS[1:2])
    runner = ExperimentRunner(backbone, [BORN, told], HOW)
    kept = runner.unhelped()
    assert {pair for pair in kept if pair[0] == "P36"} == {("P36", "ax")}
    assert kept <= {(one.name, subject) for one in (BORN, told) for subject, _ in one.facts}


def test_another_model_is_not_answered_from_what_was_kept(backbone: Backbone, tmp_path: Path) -> None:
    how = Experiment(soft=HOW.soft, finetune=HOW.finetune, models=("pretrained",), methods=("manual",))
    ExperimentRunner(backbone, [BORN], how).run(tmp_path / "kept")
    other = load(tiny_masked.save(tmp_path / "other", (*PLACES, *"was born died in".split()), seed=1))
    ExperimentRunner(other, [BORN], how).run(tmp_path / "kept")
    assert len((tmp_path / "kept").read_bytes().splitlines()) == 2


def kamel(folder: Path) -> Path:
    for split, pairs in (("train", BORN.train), ("dev", BORN.dev), ("test", BORN.facts)):
        facts = [{"sub_label": subject, "obj_label": [{"rdf": one, "chosen": one}]} for subject, one in pairs]
        jsonl(folder / "P19" / f"{split}.jsonl", facts)
    return folder


def test_the_command_shows_the_table(command: Command, backbone: Backbone, tmp_path: Path) -> None:
    arguments = ["probe", "optiprompt", kamel(tmp_path / "K"), "--model", backbone.name, "--offline"]
    arguments += ["--methods", "manual,soft-manual", "--models", "pretrained", "--least", "4", "--epochs", "1"]
    assert set(json.loads(command.done(*arguments, "--json")[0])) == {
        "majority",
        "naive-bayes",
        "pretrained manual",
        "pretrained soft-manual",
    }
    shown, told = command.done(*arguments)
    heads, *_ = shown.splitlines()
    assert heads.split() == ["P@1", "%", "all", "N-1", "UHN", "easy", "hard"]
    assert re.search(r"paper: manual +31\.1\d* +32\.4\d* +21\.8\d* +41\.5\d* +24\.3", shown)
    assert "1 relation, 4 facts" in told
    assert "for want of random finetune, embeddings finetune" in told


@pytest.mark.parametrize(("given", "said"), [("P19, P36", "no test split of 'P36'"), ("P19,", "names nothing at one")])
def test_a_property_that_is_not_there_is_no_silent_skip(
    command: Command, tmp_path: Path, given: str, said: str
) -> None:
    assert said in command.fails("probe", "optiprompt", kamel(tmp_path / "K"), "--model", "none", "--properties", given)


def test_lama_brings_its_own_facts_to_learn(tmp_path: Path) -> None:
    jsonl(tmp_path / "relations.jsonl", [{"relation": "P19", "template": "[X] was born in [Y] .", "type": "N-1"}])
    jsonl(tmp_path / "TREx" / "P19.jsonl", [{"sub_label": "ht", "obj_label": "Paris"}])
    with pytest.raises(InputError, match="name those to learn with --train"):
        read_facts(tmp_path, None, None)
    for part, (name, place) in (("train", PAIRS[0]), ("dev", PAIRS[1])):
        jsonl(tmp_path / "train" / "P19" / f"{part}.jsonl", [{"sub_label": name, "obj_label": place}])
    (facts,) = read_facts(tmp_path, tmp_path / "train", None)
    assert facts == RelationFacts(
        "P19", "{subject} was born in {mask} .", "N-1", (("ht", "Paris"),), PAIRS[:1], PAIRS[1:2]
    )


@pytest.mark.parametrize(
    "named", [{"models": ("pretrained", "randm")}, {"methods": ("soft",)}, {"methods": ("soft-0",)}]
)
def test_what_cannot_be_run_is_named_before_anything_is(named: dict[str, tuple[str, ...]]) -> None:
    with pytest.raises(InputError, match=r"there is no (model 'randm'|way 'soft)"):
        Experiment(soft=HOW.soft, finetune=HOW.finetune, **named)  # type: ignore[arg-type]


def test_prompts_are_read_from_a_file_or_from_one_for_each_relation(tmp_path: Path) -> None:
    one = jsonl(tmp_path / "auto.jsonl", [{"relation": "P19", "template": "[X]vik is {in} [Y]."}])
    mined = [{"template": "[Y] native [X]", "weight": 0.2}, {"template": "[X] in [Y]", "weight": 0.8}]
    jsonl(tmp_path / "mined" / "P19.jsonl", mined)
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
        read_prompts([f"{name}={jsonl(tmp_path / 'p.jsonl', [row])}"])


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
    layout = [next(places) if place == -3 else place for place in prompt.layout]
    spelt = subject_pieces(prompt.layout, names, backbone.tokenizer)
    held = {-2: [backbone.mask_id]}
    ids = [[one for at in layout for one in (name if at == -1 else held.get(at, [at]))] for name in spelt]
    right = (cloze_logits(backbone, ids, columns).argmax(-1) == gold).float().mean().item()
    assert right == pytest.approx(share)


PLACED = RelationFacts("P19", "{subject} was born in {mask} .", "N-1", (("a", "Rome"), ("b", "Oslo")))
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
    sheet = majority_share(fact_rows([PLACED, CAPITAL], ANSWERS))
    shares = dict(sheet.rows)
    assert "majority" not in shares
    assert shares["gold objects"] == pytest.approx(50 * (1 / 2 + 0))
    assert shares["pretrained manual"] == pytest.approx(50 * (0 + 3 / 4))
    assert shares["random finetune"] == pytest.approx(50 * (1 + 3 / 4))
    assert sheet.picture is not None
    assert "random finetune" in sheet.picture().svg


def test_relations_stand_beside_what_the_paper_reports() -> None:
    sheet = by_relation([PLACED, CAPITAL], fact_rows([PLACED, CAPITAL], ANSWERS))
    rows = [dict(zip(sheet.heads, row, strict=True)) for row in sheet.rows]
    assert [(row["P@1 %"], row["facts"], row["pretrained manual"]) for row in rows] == [("P19", 2, 50), ("P36", 4, 25)]
    assert [(row["paper: manual"], row["paper: soft-manual"]) for row in rows] == [(21.1, 20.6), (62.1, 61.3)]


def test_facts_are_shown_where_ways_of_asking_differ() -> None:
    rows = fact_rows([PLACED, CAPITAL], ANSWERS)
    assert [row.easy for row in rows] == [True, False, False, False, False, True]
    sheet = differing_facts(rows)
    assert sheet.heads[4:] == ["pretrained manual", "pretrained finetune"]
    assert [list(row) for row in sheet.rows] == [["P19", "a", "Rome", "easy", "Lima", "Rome"]]


def lama(tmp_path: Path) -> list[object]:
    """Write one relation with four train facts; return what the command needs to read it."""
    jsonl(tmp_path / "relations.jsonl", [{"relation": "P19", "template": "[X] was born in [Y] .", "type": "N-1"}])
    places = ("Rome", "Paris", "Oslo", "Rome")
    for path, names in (("TREx/P19", "abc"), ("train/P19/train", "defg"), ("train/P19/dev", "h")):
        pairs = zip(names, places, strict=False)
        jsonl(tmp_path / f"{path}.jsonl", ({"sub_label": name, "obj_label": place} for name, place in pairs))
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
