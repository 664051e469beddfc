"""LAMA's files, its filters, its averages, and ranks of a tiny masked model against plain softmax."""

import json
import string
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import tiny_causal
import tiny_masked
import torch
from command import Command
from rows import jsonl
from transformers import AutoModelForMaskedLM, AutoTokenizer

Pairs = tuple[tuple[str, str], ...]
BORN: Pairs = (("Ada Rossi", "Rome"), ("Jean Roux", "Paris"), ("Paris Hill", "Paris"))
SPEAKS: Pairs = (("Rome", "Italian"),)
LAMAS = (
    "P17 P19 P20 P27 P30 P31 P36 P37 P39 P47 P101 P103 P106 P108 P127 P131 P136 P138 P140 P159 P176 P178 P190 P264 "
    "P276 P279 P361 P364 P407 P413 P449 P463 P495 P527 P740 P937 P1001 P1303 P1376 P1412"
).split()
"""LAMA's relations; of its 41, KAMEL lacks P530."""


def trex(root: Path) -> Path:
    relations = [
        {"relation": "P19", "template": "[X] was born in [Y] .", "label": "place of birth", "type": "N-1"},
        {"relation": "P37", "template": "In [X] {formally}, [Y] is spoken .", "label": "language", "type": "N-M"},
        {"relation": "P99", "template": "[X] is [Y] .", "type": "1-1"},
    ]
    jsonl(root / "relations.jsonl", relations)
    more = {"uuid": "u", "obj_uri": "Q1", "sub_uri": "Q2", "evidences": [{"masked_sentence": "[MASK]"}]}

    def facts(relation: str, *pairs: tuple[str, str]) -> None:
        rows = [{**more, "sub_label": one, "obj_label": other, "predicate_id": relation} for one, other in pairs]
        jsonl(root / "TREx" / f"{relation}.jsonl", rows)

    facts("P19", *BORN, BORN[0])
    facts("P37", *SPEAKS)
    return root


class Literal:
    """A masked model asked by transformers alone, over some words."""

    def __init__(self, folder: Path, words: Sequence[str]) -> None:
        self.model, self.tokenizer = AutoModelForMaskedLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
        self.words = words

    def logs(self, text: str) -> torch.Tensor:
        """Return the log-probability of each word at the text's mask, (words,)."""
        encoded = self.tokenizer(text, return_tensors="pt")
        with torch.inference_mode():
            logits = self.model.eval()(**encoded).logits[encoded["input_ids"] == self.tokenizer.mask_token_id][0]
        return logits[self.tokenizer.convert_tokens_to_ids(self.words)].log_softmax(-1)

    def best(self, text: str, count: int) -> list[str]:
        return [self.words[place] for place in self.logs(text).topk(count).indices]

    def means(self, cloze: str, facts: Pairs) -> dict[str, Any]:
        """Return P@1, P@10, MRR and mean log-probability of facts, whose ranks count to 1000."""
        found = []
        for subject, gold in facts:
            logs = self.logs(cloze.replace("[X]", subject))
            own = logs[self.words.index(gold)]
            rank = int((logs > own).sum()) + 1
            found.append((rank == 1, rank <= 10, 1 / rank if rank <= 1000 else 0.0, float(own)))
        p1, p10, mrr, log = (pytest.approx(sum(part) / len(facts), abs=1e-4) for part in zip(*found, strict=True))
        return {"p1": p1, "p10": p10, "mrr": mrr, "log_probability": log, "facts": len(facts)}


def test_ranks_are_those_of_a_softmax_over_the_vocabulary(run: Command, tmp_path: Path) -> None:
    words = sorted([*"Rome Paris Italian Ada Jean born".split(), *(f"w{n}" for n in range(1000))])
    model = tiny_masked.save(tmp_path / "model", words)
    (tmp_path / "words.txt").write_text("\n".join(words))
    literal = Literal(model, words)
    born, speaks = "[X] was born in [MASK] .", "In [X] {formally}, [MASK] is spoken ."
    worst, best = (
        literal.best(born.replace("[X]", "Leo"), len(words))[-1],
        literal.best(speaks.replace("[X]", "X"), 1)[0],
    )
    own: dict[str, Pairs] = {"P19": (*BORN, ("Leo", worst)), "P37": (*SPEAKS, ("X", best))}
    trex(tmp_path)
    for name, pairs in own.items():
        jsonl(tmp_path / "TREx" / f"{name}.jsonl", [{"sub_label": one, "obj_label": other} for one, other in pairs])
    asked = ("--model", model, "--vocabulary", tmp_path / "words.txt", "--json")
    table = json.loads(run.done(tmp_path, *asked)[0])[str(model)]
    first, second = (literal.means(cloze, own[name]) for name, cloze in (("P19", born), ("P37", speaks)))
    assert table["relations"] == {"P19": first, "P37": second}
    assert table["types"] == {"N-1": first, "N-M": second}
    for measure in ("p1", "p10", "mrr", "log_probability"):
        both = [table["relations"][name][measure] for name in own]
        assert table["overall"][measure] == pytest.approx(sum(both) / 2)
    found = json.loads(run.done(squad(tmp_path), "--corpus", "squad", *asked)[0])[str(model)]["overall"]
    assert found == literal.means("[X]", (("Ada {met} [MASK] in Rome.", "Jean"), ("[MASK] was in Rome.", "Ada")))


def test_facts_that_a_name_gives_away_are_left_out(run: Command, tmp_path: Path) -> None:
    words = ["Italian", "Lima", "Oslo", "Paris", "Rome", "born", "spoken"]
    model = tiny_masked.save(tmp_path / "model", words)
    (tmp_path / "words.txt").write_text("\n".join(words))
    literal = Literal(model, words)
    names = "Ada Rossi Jean Roux Leo Bly Eva Hill".split()
    pairs = [(f"{first} {last}", town) for first in names[::2] for last in names[1::2] for town in ("Rome", "Paris")]
    trex(tmp_path)
    own = [(f"{town.upper()} {name}", town) for town in words for name in names]  # the subject holds its object
    rows = [{"sub_label": one, "obj_label": other} for one, other in (*pairs, *own)]
    jsonl(tmp_path / "TREx" / "P19.jsonl", rows)
    guessed = {name: literal.best(f"{name} is a name that is common in the city of [MASK] .", 3) for name in names}
    left = sum(not any(town in guessed[word] for word in name.split()) for name, town in pairs)
    assert 0 < left < len(pairs)
    asked = ("--model", model, "--vocabulary", tmp_path / "words.txt", "--uhn", "--json")
    table = json.loads(run.done(tmp_path, *asked)[0])[str(model)]["relations"]
    assert {name: row["facts"] for name, row in table.items()} == {"P19": left, "P37": 1}


def test_a_model_without_capitals_is_asked_objects_in_lower_case(run: Command, tmp_path: Path) -> None:
    trex(tmp_path)
    model = tiny_masked.save(tmp_path / "model", ["rome", "paris"])
    written = model / "tokenizer.json"
    known = json.loads(written.read_text())
    vocabulary = known["model"]["vocab"]
    capitals = {one for one in vocabulary if one.strip("#").isalpha() and one.isupper()}
    known["model"]["vocab"] = {2 * one.lower() if one in capitals else one: at for one, at in vocabulary.items()}
    written.write_text(json.dumps(known))
    rows = [
        {"sub_label": one, "obj_label": other} for one, other in (("Ada", "Rome"), ("Ada", "rome"), ("Jo", "Paris"))
    ]
    jsonl(tmp_path / "TREx" / "P19.jsonl", rows)
    told = run.done(tmp_path, "--model", model, "--properties", "P19")[1]
    assert "reads no capitals" in told
    assert "2 facts of 1 relation" in told


def write_kamel(root: Path, **objects: Sequence[Sequence[str]]) -> Path:
    for name, rows in objects.items():
        facts = [
            {"sub_label": f"s{n}", "obj_label": [{"rdf": one, "chosen": one, "alternative": []} for one in names]}
            for n, names in enumerate(rows)
        ]
        jsonl(root / name / "test.jsonl", facts)
    return root


def test_lamas_relations_have_its_types_and_others_are_told_by_their_facts(run: Command, tmp_path: Path) -> None:
    model = tiny_masked.save(tmp_path / "model", ["Rome"])
    facts = {"P112": [*"abc"], "P1066": [*"aab"], "P105": [["a", "b"], ["c"], ["d"]], "P99999": ["a"]}
    kamel = write_kamel(tmp_path / "KAMEL", **facts, **{name: ["a"] for name in LAMAS})
    words = (kamel, "--model", model, "--json")
    table = json.loads(run.done(*words)[0])[str(model)]
    assert {*table["relations"]} == {*LAMAS}
    assert {name: row["facts"] for name, row in table["types"].items()} == {"1-1": 2, "N-1": 23, "N-M": 15}
    for names, kind in {"P36": "1-1", "P37": "N-1", "P31": "N-M", "P112": "1-1", "P1066": "N-1", "P105": "N-M"}.items():
        assert [*json.loads(run.done(*words, "--properties", names)[0])[str(model)]["types"]] == [kind]
    assert "no template for P99999" in run.fails(*words, "--properties", "P99999")


@pytest.fixture
def run(command: Command) -> Command:
    return command.under("probe", "lama")


def test_two_models_are_compared_on_the_words_that_they_share(run: Command, tmp_path: Path) -> None:
    common = ["Rome", "Paris", "Italian"]
    first = tiny_masked.save(tmp_path / "first", [*common, "born", "London"])
    second = tiny_masked.save(tmp_path / "second", [*common, "people", "Oslo"], seed=2)
    models = ["--model", first, "--model", second]
    status, printed, told = run(trex(tmp_path), *models, "--json")
    tables = json.loads(printed)
    letters = len(string.ascii_letters + string.digits)
    assert (status, f"{3 + letters} shared words, 4 facts of 2 relations" in told) == (0, True)
    for name in map(str, (first, second)):
        table = tables[name]
        assert set(table["types"]) == {"N-1", "N-M"}
        assert table["overall"]["facts"] == 4
        for measure in ("p1", "p10", "mrr"):
            per = [one[measure] for one in table["relations"].values()]
            assert table["overall"][measure] == pytest.approx(sum(per) / 2)
            assert table["types"]["N-M"][measure] == table["relations"]["P37"][measure]
    assert tables[str(first)] != tables[str(second)]
    assert json.loads(run(tmp_path, "--model", first, "--json")[1])[str(first)]["overall"]["facts"] == 4
    printed, told = run.done(tmp_path, *models, "--uhn")
    assert ("Paris Hill" in printed, "paper, T-REx: BERT-base" in printed) == (False, True)
    assert "facts that no name gives away" in told
    listed = tmp_path / "words.txt"
    listed.write_text("Rome\nParis\n")
    assert "2 shared words, 3 facts of 1 relation" in run(tmp_path, *models, "--vocabulary", listed)[2]
    listed.write_text("Lagos\n")
    assert "share no word" in run.fails(tmp_path, *models, "--vocabulary", listed)


def test_kamels_facts_of_one_word(run: Command, tmp_path: Path) -> None:
    rows = [("Italy", ["Rome"]), ("France", ["Paris"]), ("Bolivia", ["Sucre", "La Paz"]), ("Peru", ["Lima"])]
    facts = [
        {"sub_label": land, "obj_label": [{"rdf": x, "chosen": x, "alternative": []} for x in towns]}
        for land, towns in rows
    ]
    jsonl(tmp_path / "KAMEL" / "P36" / "test.jsonl", facts)
    model = tiny_masked.save(tmp_path / "model", ["Rome", "Paris", "Sucre"])
    status, printed, told = run(tmp_path / "KAMEL", "--model", model, "--properties", "P36, P30")
    assert (status, printed, "no test split of 'P30'" in told) == (2, "", True)
    status, printed, _ = run(tmp_path / "KAMEL", "--model", model, "--json")
    table = json.loads(printed)[str(model)]
    assert (status, table["overall"]["facts"], list(table["types"])) == (0, 2, ["1-1"])


def test_bad_input_is_one_sentence(run: Command, tmp_path: Path) -> None:
    tiny_causal.save(tmp_path / "gpt2", "gpt2")
    model = tiny_masked.save(tmp_path / "bert", ["Oslo"])
    trex(tmp_path)
    torn = jsonl(tmp_path / "torn" / "relations.jsonl", [{"relation": "P19", "template": "[X] was born ."}]).parent
    jsonl(torn / "P19.jsonl", [{"sub_label": "Ada", "obj_label": "Oslo"}])
    for arguments, message in (
        ((torn, "--model", model), "P19 needs [X], [Y]"),
        ((tmp_path, "--model", model, "--properties", "P99"), "holds no facts of P99"),
        ((tmp_path, "--model", tmp_path / "gpt2"), "gpt2 model, which fills no masks"),
        ((tmp_path, "--model", model), "no fact has an object among the shared words"),
        ((tmp_path, "--model", model, "--properties", "P37,P36"), "no facts of P36"),
        ((tmp_path / "TREx", "--model", model), "does not hold"),
        ((tmp_path, "--model", model, "--corpus", "SQuAD"), "is not one of 'trex'"),
    ):
        status, printed, told = run(*arguments)
        assert (status, printed, message in told, told.count("error:")) == (2, "", True, 1)


def squad(root: Path) -> Path:
    rows = [
        {"masked_sentences": ["Ada {met} [MASK] in Rome."], "obj_label": "Jean", "sub_label": "Squad", "id": "1"},
        {"masked_sentences": ["[MASK] was in Rome."], "obj_label": "Ada", "sub_label": "Squad", "id": "2"},
        {"masked_sentences": ["[MASK] met [MASK]."], "obj_label": "Ada", "sub_label": "Squad", "id": "3"},
        {"masked_sentences": ["so " * 100 + "[MASK]."], "obj_label": "Ada", "sub_label": "Squad", "id": "4"},
    ]
    jsonl(root / "Squad" / "test.jsonl", rows)
    return root


def test_google_re_leaves_out_what_annotators_deny(run: Command, tmp_path: Path) -> None:
    yes, no = {"rater": "1", "judgment": "yes"}, {"rater": "2", "judgment": "no"}
    rows = [
        {"sub_label": "Ada Rossi", "obj_label": "Rome", "judgments": [yes, no], "masked_sentences": ["x"]},
        {"sub_label": "Jean Roux", "obj_label": "Rome", "judgments": [no, no, yes], "masked_sentences": ["x"]},
        {"sub_label": "Ada Rossi", "obj_label": "Rome", "judgments": [yes], "masked_sentences": ["y"]},
    ]
    jsonl(tmp_path / "Google_RE" / "place_of_birth_test.jsonl", rows)
    words = sorted(["Rome", *string.ascii_letters, *string.digits])
    model = tiny_masked.save(tmp_path / "model", ["Rome"])
    asked = ("--corpus", "google-re", "--properties", "place_of_birth", "--model", model, "--json")
    table = json.loads(run.done(tmp_path, *asked)[0])[str(model)]["relations"]["place_of_birth"]
    assert table == Literal(model, words).means("[X] was born in [MASK] .", (("Ada Rossi", "Rome"),))


def test_the_command_asks_a_corpus(command: Command, tmp_path: Path) -> None:
    run = command.under("probe", "lama", squad(tmp_path), "--corpus")
    model = tiny_masked.save(tmp_path / "m", "Ada Jean Rome was in met".split())
    shown, told = run.done("squad", "--model", model)
    assert "2 facts of 1 relation" in told
    assert "paper" not in shown
    assert "holds sentences" in run.fails("squad", "--model", model, "--uhn")
    assert "not parted into relations" in run.fails("squad", "--model", model, "--properties", "P19")
