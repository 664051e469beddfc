"""LAMA's files, its filters, its averages, and ranks of a tiny masked model against plain softmax."""

import json
import string
from collections import Counter
from pathlib import Path

import pytest
import tiny_causal
import tiny_masked
import torch
from command import Command
from rows import jsonl

from lmkbc import InputError
from lmkbc.masked.backbone import Backbone, load
from lmkbc.probe.kamel import kamel_data as kamel
from lmkbc.probe.kamel.kamel_data import Kamel, KamelAnswer, KamelFact
from lmkbc.probe.kmir.schema import RelationSchema, Schema
from lmkbc.probe.lama.lama_data import (
    RelationFacts,
    kamel_clozes,
    lama_table,
    lowered,
    of_kamel,
    read_corpus,
    read_trex,
    type_of,
    unhelpful,
)
from lmkbc.probe.masked_answers import MaskedRanks, known_words

BORN = RelationFacts(
    "P19",
    "{subject} was born in {mask} .",
    "N-1",
    (("Ada Rossi", "Rome"), ("Jean Roux", "Paris"), ("Paris Hill", "Paris")),
)
SPEAKS = RelationFacts("P37", "In {subject} , people speak {mask} .", "N-M", (("Rome", "Italian"),))


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

    facts("P19", *BORN.facts, BORN.facts[0])
    facts("P37", ("Rome", "Italian"))
    return root


def test_the_original_format(tmp_path: Path) -> None:
    born, speaks = read_trex(trex(tmp_path))
    assert born == BORN
    assert speaks.cloze.format(subject="Rome", mask="[MASK]") == "In Rome {formally}, [MASK] is spoken ."
    assert [one.name for one in read_trex(tmp_path, ["P37"])] == ["P37"]
    with pytest.raises(InputError, match="holds no facts"):
        read_trex(tmp_path, ["P99"])


def test_a_template_without_its_slots_is_refused(tmp_path: Path) -> None:
    trex(tmp_path)
    (tmp_path / "relations.jsonl").write_text('{"relation": "P19", "template": "[X] was born .", "type": "N-1"}')
    with pytest.raises(InputError, match=r"P19 needs \[X\], \[Y\]"):
        read_trex(tmp_path)


def test_facts_that_a_name_gives_away_are_left_out() -> None:
    harder = unhelpful(
        [BORN, SPEAKS], lambda relation, word: {"Rome"} if (relation, word) == ("P19", "Rossi") else set()
    )
    assert [one.facts for one in harder] == [(("Jean Roux", "Paris"),), (("Rome", "Italian"),)]


def test_objects_in_lower_case() -> None:
    twice = RelationFacts("P19", BORN.cloze, "N-1", (("Ada", "Rome"), ("Ada", "rome"), ("Jean", "Paris")))
    assert lowered([twice])[0].facts == (("Ada", "rome"), ("Jean", "paris"))


def test_averages_are_over_relations() -> None:
    found = lama_table([BORN, SPEAKS], {"P19": [(1, -1.0), (2, -2.0), (2000, -9.0)], "P37": [(10, -3.0)]})
    assert found.relations["P19"].p1 == pytest.approx(1 / 3)
    assert found.relations["P19"].mrr == pytest.approx(0.5)
    assert (found.overall.p1, found.overall.facts) == (pytest.approx(1 / 6), 4)
    assert found.overall.p10 == pytest.approx((2 / 3 + 1) / 2)
    assert found.types["N-M"].p10 == 1.0
    assert found.overall.log_probability == pytest.approx(-3.5)


def test_clozes_of_kamels_properties() -> None:
    clozes = kamel_clozes(Schema({"P36": RelationSchema("capital", ("The capital of {subject} is {object}.",))}))
    assert clozes["P36"] == "The capital of {subject} is {mask}."
    assert kamel_clozes(Schema({}))["P36"] == "{subject} has the capital {mask}."
    assert set(clozes) >= kamel.LAMA
    with pytest.raises(InputError, match="no template for P36"):
        of_kamel(Kamel({("P36", "test"): ()}), {})


@pytest.mark.parametrize(
    ("objects", "type_"),
    [
        ([["a"], ["b"], ["c"]], "1-1"),
        ([["a"], ["a"], ["b"]], "N-1"),
        ([["a", "b"], ["c"], ["d"]], "N-M"),
    ],
)
def test_the_type_of_kamels_relations_is_told_by_their_facts(objects: list[list[str]], type_: str) -> None:
    facts = tuple(KamelFact("P50", f"s{n}", tuple(map(KamelAnswer, names))) for n, names in enumerate(objects))
    assert of_kamel(Kamel({("P50", "test"): facts}), {"P50": "{subject} {mask}"})[0].type == type_


def test_lamas_relations_have_the_types_that_lama_gives_them() -> None:
    types = Counter(type_of(name, ()) for name in kamel.LAMA)
    assert types == {"1-1": 2, "N-1": 23, "N-M": 15}  # of 2, 23 and 16: KAMEL lacks P530
    assert [type_of(name, ()) for name in ("P36", "P37", "P31")] == ["1-1", "N-1", "N-M"]


@pytest.fixture
def backbone(tmp_path: Path) -> Backbone:
    words = "Rome Paris Italian was born in . Ada Rossi Jean Roux Hill".split()
    return load(tiny_masked.save(tmp_path / "tiny", words), offline=True)


def test_ranks_are_those_of_a_softmax_over_the_vocabulary(backbone: Backbone, tmp_path: Path) -> None:
    (sentences,) = read_corpus(squad(tmp_path), "squad")
    assert [gold for _, gold in sentences.facts] == ["Jean", "Ada"]
    names = ["Ada", "Italian", "Jean", "Paris", "Rome", "born"]
    assert set(names) <= set(known_words(backbone))
    columns = backbone.tokenizer.convert_tokens_to_ids(names)
    for asked, cloze in ((BORN, "{} was born in [MASK] ."), (sentences, "{}")):
        for (said, gold), (rank, log) in zip(asked.facts, MaskedRanks(backbone, names).ranks(asked), strict=True):
            text = backbone.tokenizer(cloze.format(said), return_tensors="pt")
            with torch.inference_mode():
                logits = backbone.model(**text).logits[0]
            logs = logits[text["input_ids"][0] == backbone.mask_id][0, columns].log_softmax(-1)
            own = logs[names.index(gold)]
            assert rank == int((logs > own).sum()) + 1
            assert log == pytest.approx(float(own), abs=1e-4)


def test_guesses_from_names_are_asked_for_persons_only(backbone: Backbone) -> None:
    probe = MaskedRanks(backbone, ["Italian", "Paris", "Rome", "born"])
    guessed = probe.guesses([BORN, SPEAKS])
    assert len(guessed("P19", "Rossi")) == 3
    assert not guessed("P37", "Rome")


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
    for arguments, message in (
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


def test_google_re_leaves_out_what_annotators_deny(tmp_path: Path) -> None:
    yes, no = {"rater": "1", "judgment": "yes"}, {"rater": "2", "judgment": "no"}
    rows = [
        {"sub_label": "Ada Rossi", "obj_label": "Rome", "judgments": [yes, no], "masked_sentences": ["x"]},
        {"sub_label": "Jean Roux", "obj_label": "Paris", "judgments": [no, no, yes], "masked_sentences": ["x"]},
        {"sub_label": "Ada Rossi", "obj_label": "Rome", "judgments": [yes], "masked_sentences": ["y"]},
    ]
    jsonl(tmp_path / "Google_RE" / "place_of_birth_test.jsonl", rows)
    (born,) = read_corpus(tmp_path, "google-re", ["place_of_birth"])
    assert (born.cloze, born.facts) == ("{subject} was born in {mask} .", (("Ada Rossi", "Rome"),))


def test_the_command_asks_a_corpus(command: Command, tmp_path: Path) -> None:
    run = command.under("probe", "lama", squad(tmp_path), "--corpus")
    model = tiny_masked.save(tmp_path / "m", "Ada Jean Rome was in met".split())
    shown, told = run.done("squad", "--model", model)
    assert "2 facts of 1 relation" in told
    assert "paper" not in shown
    assert "holds sentences" in run.fails("squad", "--model", model, "--uhn")
    assert "not parted into relations" in run.fails("squad", "--model", model, "--properties", "P19")
