"""`lmkbc train mlm`, `finetune` and `soft-prompt` on a tiny BERT; what they leave answers."""

import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import tiny_masked
import torch
from command import Command
from rows import jsonl
from safetensors.torch import load_file
from small import give_mini
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import AutoModelForMaskedLM, AutoTokenizer, BertConfig, BertForMaskedLM, PreTrainedTokenizerFast

ASKED = "PersonPlaysInstrument"
NAMES = "ada bob cid dot eve fay gus hal ida jon kim leo".split()
PLACES = "paris rome oslo lima".split()
KNOWN = {name: [PLACES[n % 4]] for n, name in enumerate(NAMES)}
QUICK = ("--rate", "1e-2", "--epochs", "2", "--batch", "4")
THOROUGH = ("--rate", "2e-2", "--epochs", "25", "--batch", "8")


@pytest.fixture(scope="module")
def backbone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    words = "plays the which is an instrument musician on stage known for playing none new york"
    return tiny_masked.save(tmp_path_factory.mktemp("model") / "tiny", [*NAMES, *PLACES, *words.split()])


@dataclass(frozen=True)
class Teaching:
    """Trainings of the backbone on a workspace with these facts, and what their models answer."""

    command: Command
    backbone: Path

    def knows(self, facts: Mapping[str, Sequence[str]], held_out: str = "somebody else", **others: Any) -> None:
        """Write the train split, and the only subject of val and test. others: relation -> its facts."""
        ids = {"New York": "Q60"} | {name: f"Q{n}" for n, name in enumerate(PLACES, 10)}
        for split, known in (("train", facts), ("val", {held_out: []}), ("test", {held_out: []})):
            jsonl(
                Path("own/eval/mini", f"{split}.jsonl"),
                [
                    {
                        "SubjectEntity": subject,
                        "Relation": relation,
                        "ObjectEntities": [*objects],
                        "ObjectEntitiesID": [ids.get(name, "Q6") for name in objects],
                    }
                    for relation, some in {ASKED: known, **(others if split == "train" else {})}.items()
                    for subject, objects in some.items()
                ],
            )

    def words(self, kind: str, *more: object, backbone: object = None, out: str = "out") -> list[object]:
        """The words of a training."""
        own = ("--edition", "mini", "--workspace", "own", "--offline", "--device", "cpu")
        return ["train", kind, "--backbone", backbone or self.backbone, "--out", out, *own, *more]

    def of(self, kind: str, *more: object, **where: Any) -> tuple[Any, str]:
        """Train. Return what is shown as JSON, and what is told."""
        shown, told = self.command.done(*self.words(kind, *more, "--json", **where))
        return json.loads(shown), told

    def answers(self, split: str = "train") -> dict[str, dict[str, Any]]:
        """Return subject -> object -> its row, best first, as a run of the trained model keeps them."""
        run = f"run-{len([*Path().glob('run-*')])}"
        asked = ("--edition", "mini", "--workspace", "own", "--split", split, "--out", run, "--offline")
        self.command.done("predict", "--system", "entity-masked", "--model", "out", *asked)
        lines = gzip.decompress(Path(run, "candidates.jsonl.gz").read_bytes()).splitlines()
        rows = map(json.loads, lines)
        return {row["SubjectEntity"]: {one["object"]: one for one in row["candidates"]} for row in rows}


@pytest.fixture
def teaching(command: Command, backbone: Path, one_thread: None) -> Teaching:
    give_mini(Path("own"), ASKED, 1)
    made = Teaching(command, backbone)
    made.knows(KNOWN)
    return made


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return dict(AutoModelForMaskedLM.from_pretrained(folder).state_dict())


def record(folder: str = "out") -> dict[str, Any]:
    assert not [*Path().glob(".*checkpoint*")]
    known: dict[str, Any] = json.loads(Path(folder, "training.json").read_bytes())
    return known


def entities() -> dict[str, Any]:
    known: dict[str, Any] = json.loads(Path("out/entities.json").read_bytes())
    return known


def without_folds() -> None:
    """From now on the trained model answers for all subjects with the head that saw them all."""
    Path("out/training.json").unlink()
    Path("out/entities.json").write_text(json.dumps(entities() | {"folds": {}}))


def best(answers: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    return {subject: next(iter(found)) for subject, found in answers.items()}


def test_every_kind_of_training_leaves_a_model_that_loads(teaching: Teaching) -> None:
    shown, told = teaching.of("mlm", "--all-weights", *QUICK)
    assert len(shown["losses"]) == 2
    assert "overlap of subjects to train on with held-out names: 0" in told
    assert "overlap of subjects to train on with held-out names: 0" in record()["proof"]
    taught = Path("out/taught.txt").read_text().splitlines()
    assert len(taught) == 11, "one in ten is held out"
    assert all(any(name in line for name in NAMES) for line in taught)
    teaching.of("finetune", *QUICK)
    assert record()["steps"] == 2 * 3  # 11 of 12, four at a time
    assert "paris" in entities()["names"]
    before = weights(teaching.backbone)
    shown, _ = teaching.of("soft-prompt", *QUICK, "--length", "3")
    assert shown.keys() == {"instrument"}
    assert all(0 <= share <= 1 for share in shown["instrument"].values())
    after = weights(Path("out"))
    assert all(torch.equal(value, after[name]) for name, value in before.items()), "only the prompt's vectors learn"
    (vectors,) = (one for one in load_file("out/soft_prompts.safetensors").values() if one.ndim == 2)
    assert vectors.shape == (3, 32)


def test_a_soft_prompt_learns_where_only_its_vectors_change(teaching: Teaching) -> None:
    teaching.knows({name: ["paris"] for name in NAMES})
    shown, _ = teaching.of("soft-prompt", "--rate", "5e-2", "--epochs", "15", "--batch", "4")
    assert shown == {"instrument": {"before": pytest.approx(shown["instrument"]["before"]), "after": 1.0}}


def test_a_model_answers_train_subjects_with_heads_that_never_saw_them(teaching: Teaching) -> None:
    silver = Path("data/silver2023")
    silver.mkdir(parents=True)
    more = [{"SubjectEntity": f"{name} {letter}", "ObjectEntities": KNOWN[name]} for name in NAMES for letter in "ab"]
    (silver / f"{ASKED}.jsonl.gz").write_bytes(gzip.compress("\n".join(map(json.dumps, more)).encode()))
    teaching.of("mlm", *QUICK, "--data", "data")
    assert {*entities()["folds"].values()} == {0, 1, 2}
    assert entities()["folds"].keys() == KNOWN.keys()
    apart, unseen = teaching.answers(), teaching.answers("val")
    without_folds()
    whole = teaching.answers()
    assert teaching.answers("val") == unseen
    assert all(apart[name] != whole[name] for name in NAMES)


@pytest.mark.parametrize("expand", ["--expand", pytest.param("--words", marks=pytest.mark.whole)])
def test_the_saved_model_answers_what_its_head_learned(teaching: Teaching, expand: str) -> None:
    some = dict([*KNOWN.items()][:8])
    teaching.knows(some | {"a b": [], "c d": ["New York"]})
    before = weights(teaching.backbone)["bert.embeddings.word_embeddings.weight"]
    teaching.of("mlm", *THOROUGH, expand)
    words = weights(Path("out"))["bert.embeddings.word_embeddings.weight"]
    assert torch.equal(words[: len(before)], before)
    assert torch.equal(words, weights(Path("out"))["cls.predictions.decoder.weight"])
    assert ("New York" in entities()["names"]) is (expand == "--expand")
    apart = best(teaching.answers())
    without_folds()
    found = teaching.answers()
    right = {name: objects[0] for name, objects in (some | {"a b": [""]}).items()}
    assert {name: one for name, one in best(found).items() if name != "c d"} == right
    assert sum(apart[name] == one for name, one in right.items()) < len(right) // 2, "names tell nothing of others"
    assert all(sum(one["score"] for one in row.values()) == pytest.approx(1.0, abs=1e-3) for row in found.values())
    if expand == "--expand":
        first = next(iter(found["c d"].values()))
        assert (first["object"], first["id"]) == ("New York", "Q60")


def test_new_rows_start_as_the_mean_of_their_pieces(teaching: Teaching) -> None:
    teaching.knows(KNOWN | {"c d": ["new york"]})
    teaching.of("mlm", "--rate", "1e-12", "--epochs", "1", "--batch", "64")
    known = entities()
    before = weights(teaching.backbone)["bert.embeddings.word_embeddings.weight"]
    after = weights(Path("out"))["bert.embeddings.word_embeddings.weight"]
    assert known["rows"] == [len(before) + n for n in range(len(known["names"]))]
    ids = AutoTokenizer.from_pretrained(teaching.backbone)("new york", add_special_tokens=False)["input_ids"]
    assert len(ids) == 2
    row = known["rows"][known["names"].index("new york")]
    assert torch.allclose(after[row], before[ids].mean(0), atol=1e-6)


@pytest.mark.parametrize("what", ["all", "embeddings"])
def test_a_control_is_saved_with_the_random_weights_it_was_trained_with(teaching: Teaching, what: str) -> None:
    control = (*QUICK, "--random", what, "--seed", "5")
    teaching.of("soft-prompt", *control, "--loss", "ranking")
    first = Path("out/model.safetensors").read_bytes()
    teaching.of("soft-prompt", *control)
    assert Path("out/model.safetensors").read_bytes() == first
    old, new = weights(teaching.backbone), weights(Path("out"))
    changed = {name for name in old if old[name].ndim > 1 and not torch.equal(old[name], new[name])}
    words = {name for name in old if "word_embeddings" in name or name.endswith("decoder.weight")}
    assert changed == (words if what == "embeddings" else {name for name in old if old[name].ndim > 1})
    assert record()["random"] == what


@pytest.mark.parametrize("name", ["P999", "CountryLandBordersCountry"])
def test_a_relation_is_known_by_any_of_its_names(teaching: Teaching, name: str) -> None:
    assert f"no fact of relation '{name}'" in teaching.command.fails(*teaching.words("mlm", "--relation", name))


def test_facts_too_few_to_stop_early_by_are_all_learned(teaching: Teaching) -> None:
    Path("data/silver2023").mkdir(parents=True)
    row = json.dumps({"SubjectEntity": "ada e", "ObjectEntities": ["paris"]})
    Path(f"data/silver2023/{ASKED}.jsonl.gz").write_bytes(gzip.compress(row.encode()))
    shown, told = teaching.of("mlm", *QUICK, "--data", "data")
    assert len(shown["losses"]) == 2
    assert "overlap" in told


def test_a_relation_without_objects_of_one_token_does_not_stop_the_others(teaching: Teaching) -> None:
    teaching.knows(KNOWN, CountryBordersCountry={name: ["new york"] for name in NAMES})
    shown, told = teaching.of("soft-prompt", *QUICK)
    assert shown.keys() == {"instrument"}
    assert "no soft prompt for country-borders" in told
    told = teaching.command.fails(*teaching.words("soft-prompt", *QUICK, "--relation", "CountryBordersCountry"))
    assert "no relation has objects of one token" in told


def test_nothing_to_train_on_is_said(teaching: Teaching) -> None:
    teaching.knows({name: [] for name in NAMES})
    assert "no example" in teaching.command.fails(*teaching.words("mlm", "--all-weights", *QUICK))


def test_early_stopping_keeps_the_best_weights_and_stops(teaching: Teaching) -> None:
    again = ("--all-weights", "--batch", "4", "--rate")
    shown, _ = teaching.of("mlm", *again, "3e-2", "--epochs", "30")
    lowest = shown["held_out"].index(min(shown["held_out"]))
    assert len(shown["losses"]) == lowest + 2 < 30
    more, _ = teaching.of("mlm", *again, "1e-9", "--epochs", "1", backbone="out", out="again")
    assert more["held_out"][0] == pytest.approx(min(shown["held_out"]), rel=1e-3)


def test_expanded_objects_are_learned_as_one_token_and_found_again(teaching: Teaching) -> None:
    teaching.knows({name: ["New York"] for name in NAMES} | {"c": []})
    before = len(AutoTokenizer.from_pretrained(teaching.backbone))
    teaching.of("mlm", "--all-weights", "--expand", "--rate", "1e-2", "--epochs", "20", "--batch", "4")
    tokenizer, model = AutoTokenizer.from_pretrained("out"), AutoModelForMaskedLM.from_pretrained("out")
    row = tokenizer.convert_tokens_to_ids("New York")
    assert row >= before
    ids = tokenizer("ada is known for playing the [MASK].", return_tensors="pt")
    with torch.inference_mode():
        logits = model(input_ids=ids["input_ids"]).logits[0]
    assert int(logits[ids["input_ids"][0].tolist().index(tokenizer.mask_token_id)].argmax()) == row


def test_sentences_take_the_place_of_facts_and_are_masked_at_random_only(teaching: Teaching) -> None:
    Path("text.txt").write_text("ada is playing in paris .\nbob is playing in rome .\n" * 10)
    given = ("--all-weights", "--text", "text.txt", *QUICK)
    shown, _ = teaching.of("mlm", *given, "--mask", "random")
    assert (shown["steps"], len(shown["held_out"])) == (2 * 5, 3)  # 18 of 20, four at a time
    assert "20 sentences, none of which holds a held-out name" in record()["proof"]
    assert "use --mask random" in teaching.command.fails(*teaching.words("mlm", *given, out="other"))
    Path("text.txt").write_text("paris is the home of ada\n[MASK]\n\n" * 10 + "a b c d " * 40)
    shown, _ = teaching.of("mlm", *given, "--mask", "random")
    assert record()["steps"] <= 2 * 3, "of what has nothing to mask nothing is learned"


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--mask", "random"], "add --all-weights"),
        (["--apart"], "add --all-weights"),
        (["--all-weights", "--mask", "subject"], "mask policy"),
        (["--epochs", "0"], "give 1 or more"),
        (["--rate", "-1"], "give a rate above 0"),
    ],
)
def test_options_without_an_effect_are_refused(teaching: Teaching, options: list[str], reason: str) -> None:
    assert reason in teaching.command.fails(*teaching.words("mlm", *options))


def test_a_directory_that_was_not_taught_is_told_apart(teaching: Teaching) -> None:
    asked = ("predict", "--system", "entity-masked", "--edition", "mini", "--workspace", "own", "--out", "x")
    told = teaching.command.fails(*asked, "--model", teaching.backbone)
    assert "holds no entities.json: name a directory" in told
    teaching.of("mlm", *QUICK)
    known = entities()
    Path("out/training.json").unlink()
    for content, reason in (
        (json.dumps(known | {"rows": [10**6, *known["rows"][1:]]}), "not of the model beside it"),
        ('{"names": 1}', "no list of objects"),
    ):
        Path("out/entities.json").write_text(content)
        assert reason in teaching.command.fails(*asked, "--model", "out")


def test_a_file_in_the_models_place_is_refused_before_anything_is_learned(teaching: Teaching) -> None:
    Path("out").write_text("mine")
    assert "is a file: name a directory" in teaching.command.fails(*teaching.words("mlm", *QUICK))
    assert Path("out").read_text() == "mine"


def test_objects_of_one_token_are_those_that_stand_at_the_mask(teaching: Teaching, tmp_path: Path) -> None:
    """In byte pairs the space before a word is part of its token."""
    signs = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: n for n, token in enumerate(["<s>", "<pad>", "</s>", "<unk>", "<mask>", *signs, "ĠR"])}
    pairs = Tokenizer(models.BPE(vocabulary, [("Ġ", "R")], unk_token="<unk>"))
    pairs.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    given = {"pad_token": "<pad>", "sep_token": "</s>", "cls_token": "<s>"}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=pairs, mask_token="<mask>", unk_token="<unk>", **given)
    config = BertConfig(vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=1, num_attention_heads=2)
    for part in (BertForMaskedLM(config), tokenizer):
        part.save_pretrained(tmp_path / "pairs")
    teaching.knows({name: ["R"] for name in NAMES})
    teaching.of("finetune", *QUICK, backbone=tmp_path / "pairs")
    assert entities()["rows"][1:] == [vocabulary["ĠR"]]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_all_that_learns_lies_where_the_model_lies(teaching: Teaching) -> None:
    teaching.of("mlm", *QUICK, "--device", "cuda")
    assert "paris" in entities()["names"]
