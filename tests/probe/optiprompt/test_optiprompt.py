"""OptiPrompt by its command: facts to learn and to test on, ways of asking, controls, and tables from the facts."""

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
import tiny_masked
import torch
from command import Command
from rows import jsonl
from transformers import AutoModelForMaskedLM, AutoTokenizer

pytestmark = pytest.mark.usefixtures("one_thread")
PLACES = ("Rome", "Paris", "Lima", "Oslo")
NAMES = tuple(f"{first}{last}" for first in "abcdefgh" for last in "stuv")
Pairs = Sequence[tuple[str, str]]
PAIRS = tuple((name, PLACES["stuv".index(name[1])]) for name in NAMES)
TESTED = PAIRS[28:]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    words = (*PLACES, *"was born died in capital the of speak people".split())
    return tiny_masked.save(tmp_path_factory.mktemp("tiny"), words)


def write_facts(folder: Path, pairs: Pairs, *names: str) -> None:
    for name in names:
        jsonl(folder / f"{name}.jsonl", [{"sub_label": one, "obj_label": other} for one, other in pairs])


def kamel(
    folder: Path, name: str = "P19", *, train: Pairs = PAIRS[:24], dev: Pairs = PAIRS[24:28], test: Pairs = TESTED
) -> Path:
    for split, pairs in (("train", train), ("dev", dev), ("test", test)):
        facts = [{"sub_label": subject, "obj_label": [{"rdf": one, "chosen": one}]} for subject, one in pairs]
        jsonl(folder / name / f"{split}.jsonl", facts)
    return folder


@pytest.fixture
def asked(command: Command, tmp_path: Path) -> Any:
    """Return the table in JSON, the test facts with each row's answers, and what is told."""

    def run(*words: object, methods: str = "manual", models: str = "pretrained") -> tuple[Any, Any, str]:
        facts = tmp_path / "facts.jsonl"
        given = ("probe", "optiprompt", *words, "--offline", "--methods", methods, "--models", models)
        printed, told = command.done(*given, "--facts", facts, "--json")
        return json.loads(printed), [json.loads(line) for line in facts.read_text().splitlines()], told

    return run


def share(facts: Any, row: str, want: Callable[[Any], Any] = lambda fact: fact["object"]) -> float | None:
    """Return the share of facts that a row answers with what is wanted, mean over relations."""
    names = {fact["relation"] for fact in facts}
    parts = [[fact["answers"][row] == want(fact) for fact in facts if fact["relation"] == name] for name in names]
    return fmean(sum(part) / len(part) for part in parts) if parts else None


def half_gap(values: Sequence[float | None]) -> float:
    """Return half of the interval of the mean of two relations, of which a bootstrap of n - 1 draws one."""
    low, high = sorted(value or 0.0 for value in values)
    return (high - low) / 2


def test_tables_are_means_over_relations_of_what_each_row_answers(
    asked: Any, command: Command, model: Path, tmp_path: Path
) -> None:
    source, train = tmp_path / "lama", tmp_path / "train"
    rows = [("P36", "The capital of [X] is [Y] .", "1-1"), ("P37", "people speak [Y] in [X] .", "N-M")]
    jsonl(source / "relations.jsonl", [{"relation": n, "template": text, "type": kind} for n, text, kind in rows])
    write_facts(source / "TREx", [*TESTED, ("City of Rome", "Rome")], "P36")
    write_facts(source / "TREx", [("ax", "Rome"), ("bs", "Oslo"), ("c Lima", "Lima")], "P37")
    for name in ("P36", "P37"):
        write_facts(train / name, PAIRS[:9], "train")
        write_facts(train / name, PAIRS[24:28], "dev")
    words = (source, "--train", train, "--model", model, "--least", 4, "--epochs", 1, "--finetune-rate", "1e-3")
    words += ("--finetune-batch", 8, "--kept", tmp_path / "kept.jsonl")
    table, facts, _ = asked(*words, methods="manual,finetune", models="pretrained,random")
    assert Counter(fact["relation"] for fact in facts) == {"P36": 5, "P37": 3}
    assert {*table} == {"majority", "naive-bayes"} | {
        f"{one} {how}" for one in ("pretrained", "random") for how in ("manual", "finetune")
    }
    for fact in facts:
        assert fact["easy"] == (fact["object"] in (fact["answers"]["naive-bayes"], fact["answers"]["random finetune"]))
    for row, found in table.items():
        assert found["overall"] == pytest.approx(share(facts, row))
        for name, _, kind in rows:
            assert found["types"][kind] == pytest.approx(share([one for one in facts if one["relation"] == name], row))
        assert found["uhn"] == pytest.approx(share([one for one in facts if one["object"] not in one["subject"]], row))
        for part, easy in (("easy", True), ("hard", False)):
            assert found[part] == pytest.approx(share([one for one in facts if one["easy"] is easy], row))
        of_each = [share([one for one in facts if one["relation"] == name], row) for name, _, _ in rows]
        assert found["bounds"] == {"mean": found["overall"], "half_width": pytest.approx(half_gap(of_each))}
        assert bool(found["leads"]) == row.endswith(" finetune")
        for part, lead in found["leads"].items():
            column = "overall" if part == "all" else part.lower()
            manual = table[row.replace("finetune", "manual")]
            assert lead["mean"] == pytest.approx(found[column] - manual[column])
    more = ("--methods", "manual,finetune", "--models", "pretrained,random", "--offline")
    words += ("--table", "by-relation,majority-share,facts", "--pictures", tmp_path / "svg")
    lines = command.done("probe", "optiprompt", *words, *more)[0].splitlines()
    cells = {one[0]: one[1:] for one in (re.split(r"  +", line.strip()) for line in reversed(lines)) if len(one) > 1}
    majority = {row: share(facts, row, lambda fact: fact["answers"]["majority"]) for row in table}
    gold = fmean(
        fmean(one["object"] == one["answers"]["majority"] for one in facts if one["relation"] == name)
        for name, _, _ in rows
    )
    assert float(cells["gold objects"][0]) == pytest.approx(100 * gold, abs=1e-3)
    assert float(cells["pretrained manual"][0]) == pytest.approx(100 * (majority["pretrained manual"] or 0), abs=1e-3)
    assert cells["P36"][:2] == ["1-1", "5"]
    assert cells["P36"][-2:] == ["62.100", "61.300"]
    ours = [row for row in table if row.startswith("pretrained ")]
    differing = [one for one in facts if len({one["answers"][row] == one["object"] for row in ours}) > 1]
    text = f"some ways of asking answer, {len(differing)} of {len(differing)}"
    assert any(text in line for line in lines)
    assert "random finetune" in (tmp_path / "svg" / "majority-share.svg").read_text()


def test_objects_that_no_train_fact_names_and_words_that_are_no_token_are_left_out(
    asked: Any, command: Command, tmp_path: Path
) -> None:
    model = tiny_masked.save(tmp_path / "m", ["Rome", "Paris", "Oslo", "Kyiv"])
    train = [
        (f"{place}{n}".lower(), place)
        for place, count in (("Rome", 3), ("Paris", 5), ("Oslo", 1))
        for n in range(count)
    ]
    source = kamel(
        tmp_path / "K", train=train, test=(("y", "Paris"), ("z", "Kyiv"), ("w", "Lima"), ("x", "Oslo"), ("v", "Rome"))
    )
    words = (source, "--model", model, "--least", 3)
    _, facts, _ = asked(*words)
    assert [(one["subject"], one["object"]) for one in facts] == [("y", "Paris"), ("x", "Oslo"), ("v", "Rome")]
    assert [one["answers"]["majority"] for one in facts] == ["Paris"] * 3
    _, facts, _ = asked(*words, "--most", 3)
    assert [one["answers"]["majority"] for one in facts] == ["Rome"] * 3
    said = command.fails("probe", "optiprompt", source, "--model", model, "--least", 99)
    assert "no relation keeps 99 facts" in said


def test_no_subject_that_is_tested_on_is_learned_in_any_spelling(asked: Any, model: Path, tmp_path: Path) -> None:
    leaked = [("AS", "Rome"), ("As", "Rome"), ("aS", "Rome"), ("As ", "Rome")]
    test = [("as", "Rome"), ("x", "Paris")]
    train = [*leaked, ("b", "Paris"), ("c", "Paris"), ("d", "Rome")]
    source = kamel(tmp_path / "K", train=train, dev=[("e", "Paris"), *leaked], test=test)
    kamel(source, "P20", train=PAIRS[:2])
    _, facts, told = asked(source, "--model", model, "--least", 3)
    assert [one["answers"]["majority"] for one in facts] == ["Paris"] * 2
    assert "left out, with fewer than 3 facts to learn or too few to test: P20" in told


@pytest.mark.whole
def test_prompts_and_weights_learn_and_a_killed_run_goes_on(asked: Any, model: Path, tmp_path: Path) -> None:
    source, kept = kamel(kamel(tmp_path / "K"), "P20", test=(("ax", "Rome"), ("bs", "Oslo"))), tmp_path / "kept.jsonl"
    words = (source, "--model", model, "--least", 4, "--epochs", 20, "--batch", 8, "--finetune-batch", 8)
    words += ("--rate", "3e-2", "--finetune-rate", "1e-2", "--kept", kept)
    first, facts, _ = asked(*words, methods="manual,soft-3,finetune")
    born = [one for one in facts if one["relation"] == "P19"]
    assert (share(born, "pretrained finetune") or 0) >= 0.75 > (share(born, "pretrained manual") or 0)
    lines = kept.read_bytes().splitlines(keepends=True)
    kept.write_bytes(lines[0])
    assert asked(*words, methods="manual,soft-3,finetune")[:2] == (first, facts)
    assert kept.read_bytes() == b"".join(lines)


def test_facts_that_names_tell_are_known_by_the_models_own_tokens(
    asked: Any, save_model: Callable[..., Path], tmp_path: Path
) -> None:
    """A model that reads no capitals has no word "Rome", but a token for it."""
    test = (("City of Rome", "Rome"), ("ax", "Paris"), ("bx", "Rome"))
    source = kamel(tmp_path / "K", "P36", test=test, train=[pair for pair in PAIRS[:24] if pair[1] != "Lima"])
    table, facts, _ = asked(source, "--model", save_model(), "--least", 4)
    assert [one["subject"] for one in facts] == [name for name, _ in test]
    assert table["pretrained manual"]["uhn"] == share(facts[1:], "pretrained manual")


def test_another_model_is_not_answered_from_what_was_kept(asked: Any, model: Path, tmp_path: Path) -> None:
    other = tiny_masked.save(tmp_path / "other", (*PLACES, *"was born in".split()), seed=1)
    for one in (model, other, model):
        asked(kamel(tmp_path / "K"), "--model", one, "--least", 4, "--kept", tmp_path / "kept")
    assert len((tmp_path / "kept").read_bytes().splitlines()) == 2


def test_the_command_shows_the_table(command: Command, model: Path, tmp_path: Path) -> None:
    arguments = ["probe", "optiprompt", kamel(tmp_path / "K"), "--model", model, "--offline"]
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
    assert re.search(r"ahead, all +\+- +ahead, UHN", shown)
    assert re.search(r"paper: soft-5 +47\.6\d* +- +16\.5", shown)
    assert "1 relation, 4 facts" in told
    assert "for want of random finetune, embeddings finetune" in told


@pytest.mark.parametrize(("given", "said"), [("P19, P36", "no test split of 'P36'"), ("P19,", "names nothing at one")])
def test_a_property_that_is_not_there_is_no_silent_skip(
    command: Command, tmp_path: Path, given: str, said: str
) -> None:
    assert said in command.fails("probe", "optiprompt", kamel(tmp_path / "K"), "--model", "none", "--properties", given)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--models", "pretrained,randm"), "there is no model 'randm'"),
        (("--methods", "soft"), "there is no way 'soft'"),
        (("--methods", "soft-0"), "there is no way 'soft-0'"),
    ],
)
def test_what_cannot_be_run_is_named_before_anything_is(
    command: Command, tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    assert message in command.fails("probe", "optiprompt", kamel(tmp_path / "K"), "--model", "none", *words)


def test_lama_needs_facts_to_learn(command: Command, tmp_path: Path) -> None:
    words = lama(tmp_path)[:3]
    assert "name those to learn with --train" in command.fails(*words, "--model", "none")


@pytest.mark.parametrize(
    ("name", "row", "said"),
    [
        ("manual", {"relation": "P19", "template": "[X] [Y]"}, "another way of asking"),
        ("A", {"template": "[X] [Y]"}, "needs a relation"),
        ("A", {"relation": "P19", "template": "[X] only"}, "needs [X], [Y]"),
        ("A", {"relation": "P20", "template": "[X] [Y]"}, "the prompts of A ask nothing about P19"),
        ("", {}, "give NAME=FILE"),
    ],
)
def test_a_prompt_that_makes_no_sense_is_refused(
    command: Command, model: Path, tmp_path: Path, name: str, row: dict[str, object], said: str
) -> None:
    prompts = f"{name}={jsonl(tmp_path / 'p.jsonl', [row])}"
    words = ("probe", "optiprompt", kamel(tmp_path / "K"), "--model", model, "--least", 4, "--methods", "manual")
    assert said in command.fails(*words, "--prompts", prompts, "--models", "pretrained", "--offline")


class Literal:
    """A masked model asked by transformers alone."""

    def __init__(self, folder: Path) -> None:
        self.model, self.tokenizer = AutoModelForMaskedLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
        self.names = sorted(PLACES)

    def logs(self, ids: Sequence[int]) -> torch.Tensor:
        """Return the log-probabilities of the names at the mask of some tokens."""
        with torch.inference_mode():
            logits = self.model.eval()(input_ids=torch.tensor([ids])).logits[0, ids.index(self.tokenizer.mask_token_id)]
        return logits[self.tokenizer.convert_tokens_to_ids(self.names)].log_softmax(-1)


def test_clozes_of_a_relation_answer_together_by_weight(asked: Any, model: Path, tmp_path: Path) -> None:
    one = jsonl(tmp_path / "auto.jsonl", [{"relation": "P19", "template": "[X] was {in} [Y]."}])
    mined = [{"template": "[Y] , [X]", "weight": 0.3}, {"template": "[X] was in [Y] .", "weight": 0.7}]
    jsonl(tmp_path / "mined" / "P19.jsonl", mined)
    collections = ("--prompts", f"A={one}", "--prompts", f"L={tmp_path / 'mined'}")
    source = kamel(tmp_path / "K", test=[(f"{first}{last}", "Rome") for first in "mnopq" for last in "stuv"])
    _, facts, _ = asked(source, "--model", model, "--least", 4, *collections)
    literal = Literal(model)
    wanted = {"A": (("[X] was {in} [Y].", 1.0),), "L": [(row["template"], row["weight"]) for row in mined]}
    for fact in facts:
        for name, clozes in wanted.items():
            texts = [cloze.replace("[X]", fact["subject"]).replace("[Y]", "[MASK]") for cloze, _ in clozes]
            logs = sum(
                (
                    weight * literal.logs(literal.tokenizer(text)["input_ids"])
                    for text, (_, weight) in zip(texts, clozes, strict=True)
                ),
                torch.zeros(1),
            )
            assert fact["answers"][f"pretrained {name}"] == literal.names[int(logs.argmax())]


def test_facts_that_a_persons_name_gives_away_are_those_of_its_likeliest_places(
    asked: Any, model: Path, tmp_path: Path
) -> None:
    names = [f"{first}{last}" for first in "mnop" for last in "stuv"]
    test = [(name, PLACES[number % 3]) for number, name in enumerate(names)]
    table, facts, _ = asked(kamel(tmp_path / "K", test=test), "--model", model, "--least", 4)
    literal, kept = Literal(model), []
    for fact in facts:
        text = f"{fact['subject']} is a name that is common in the city of [MASK] ."
        best = literal.logs(literal.tokenizer(text)["input_ids"]).topk(3).indices.tolist()
        kept += [] if fact["object"] in [literal.names[place] for place in best] else [fact]
    assert 0 < len(kept) < len(facts)
    for row, found in table.items():
        assert found["uhn"] == pytest.approx(share(kept, row))


def test_a_searched_prompt_is_of_lower_case_tokens_and_more_steps_find_no_worse(
    asked: Any, model: Path, tmp_path: Path
) -> None:
    source = kamel(tmp_path / "K", dev=TESTED, test=[(f"{first}{last}", "Rome") for first in "mnop" for last in "stuv"])
    words = (source, "--model", model, "--least", 4, "--iterations", 9)
    _, facts, told = asked(*words, methods="autoprompt-3")
    (shown,) = re.findall(r"autoprompt-3: \[X\] (.*) \[Y\] \.", told)
    pieces = shown.split(" ")
    assert len(pieces) == 3
    assert not {*pieces} & {"[MASK]", "[SEP]"}
    assert not any(piece[0].isupper() for piece in pieces)
    assert asked(*words, methods="autoprompt-3")[1] == facts
    literal = Literal(model)
    tokens = literal.tokenizer
    for fact in facts:
        first, last = (
            tokens(fact["subject"], add_special_tokens=False)["input_ids"],
            tokens.convert_tokens_to_ids(["[MASK]", ".", "[SEP]"]),
        )
        ids = [tokens.cls_token_id, *first, *tokens.convert_tokens_to_ids(pieces), *last]
        assert fact["answers"]["pretrained autoprompt-3"] == literal.names[int(literal.logs(ids).argmax())]


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
