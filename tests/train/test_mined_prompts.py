"""Mined prompts: spans of a text, their filters, their order by train F1, and a recipe that asks them."""

import gzip
import json
import shutil
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest
from command import Command
from hypothesis import given
from hypothesis import strategies as st
from opened import part, recipe_file, recipe_of
from rows import jsonl
from space import MINI, SPACE, TRAIN
from tiny_masked import save

from lmkbc import InputError
from lmkbc.masked.backbone import load
from lmkbc.masked.masked import MaskedGenerator
from lmkbc.testing import Example, GoldObject, Query
from lmkbc.train.mined_prompts import TrainF1, choose, mine

ROWS = [
    Example(Query("Ada", "home"), (GoldObject(("Rome", "Roma")), GoldObject(("New York",)))),
    Example(Query("Paris Hilton", "home"), (GoldObject(("Paris",)),)),
    Example(Query("Bob", "child"), ()),
]


def found(sentence: str) -> list[str]:
    """The clozes of a sentence, and "" for each span that is of no use."""
    counts = mine([sentence], ROWS)
    clozes = [cloze for some in counts.clozes.values() for cloze in some.elements()]
    return [*clozes, *[""] * (counts.pairs.total() - len(clozes))]


@pytest.mark.parametrize(
    ("sentence", "clozes"),
    [
        ("Today Ada lives in Rome .", ["{subject} lives in {mask}."]),
        ("ADA lives  in\tROMA, they say", ["{subject} lives in {mask}."]),
        ("New York, the home of Ada", ["{mask}, the home of {subject}."]),
        ("Rome-born Ada", ["{mask}-born {subject}."]),
        ("Ada left Rome and moved to New York", ["{subject} left {mask}."]),
        ("Rome knows Ada, and Ada loves New York", ["{mask} knows {subject}.", "{subject} loves {mask}."]),
        ("Paris Hilton lives in Paris", ["{subject} lives in {mask}."]),
        ("Ada lives in Romeo, York, Madagascar", []),
        ("Bob lives in Rome", []),
        ("Ada , of Rome", [""]),
        ("Rome's Ada", [""]),
        ("Ada Rome", [""]),
        ("Ada " + "word " * 10 + "Rome", ["{subject} " + "word " * 10 + "{mask}."]),
        ("Ada " + "word " * 11 + "Rome", [""]),
        ("Ada {saw} Rome", [""]),
        ("Ada saw [MASK] of Rome", [""]),
        ("Ada saw \x1b Rome", [""]),
    ],
)
def test_the_words_between_a_subject_and_its_object_become_a_cloze(sentence: str, clozes: list[str]) -> None:
    assert found(sentence) == clozes


PARTS = st.sampled_from(["Ada", "Rome", "Roma", "New York", "{", "}", "{mask}", "[MASK]"]) | st.text(max_size=4)


@given(st.lists(PARTS, max_size=9))
def test_a_mined_cloze_holds_both_slots_exactly_once(parts: list[str]) -> None:
    for cloze in filter(None, found(" ".join(["Ada", *parts, "Rome"]))):
        assert (cloze.count("{subject}"), cloze.count("{mask}")) == (1, 1)
        assert not [token for token in ("[MASK]", "[UNK]", "<mask>", "</s>") if token in cloze]
        assert tomllib.loads(f"# {cloze}") == {}


def test_the_most_frequent_spans_are_kept_however_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lmkbc.train.mined_prompts.MOST_SPANS", 4)
    text = ["Ada loves Rome", "Ada leaves Rome", "Ada loves Roma", *(f"Ada saw {n:03} {n:03} Rome" for n in range(50))]
    counts = mine(text, ROWS)
    assert (counts.sentences, counts.pairs["home"]) == (53, 53)
    assert len(counts.clozes["home"]) <= 4
    assert counts.most("home", 1) == [("{subject} loves {mask}.", 2)]
    assert counts.most("child", 1) == []


class Told(TrainF1):
    """F1 of clozes and of their averages, as a test says."""

    def __init__(self, alone: dict[str, float], together: Sequence[float]) -> None:
        self.alone, self.together = alone, together

    def answers(self, cloze: str) -> list[dict[str, float]]:
        return [{cloze: 1.0}]

    def of(self, *asked: Sequence[dict[str, float]]) -> float:  # type: ignore[override]
        return self.alone[next(iter(asked[0][0]))] if len(asked) == 1 else self.together[len(asked) - 2]


@pytest.mark.parametrize(
    ("together", "f1", "kept"),
    [
        ([0.42, 0.425], (0.4, 0.42, 0.425), ["b", "c"]),
        ([0.41, 0.9], (0.4, 0.41), ["b"]),
        ([0.5, 0.6], (0.4, 0.5, 0.6), ["b", "c", "a"]),
    ],
)
def test_prompts_are_ranked_and_averaged_as_long_as_f1_gains(
    together: list[float], f1: tuple[float, ...], kept: list[str]
) -> None:
    told = Told({"a": 0.1, "b": 0.4, "c": 0.3, "own": 0.2}, together)
    made = choose(told, "own", [("a", 9), ("b", 5), ("c", 1)], 15, 0.01)
    assert [(one.cloze, one.count) for one in made.ranked] == [("b", 5), ("c", 1), ("a", 9)]
    assert (made.f1, list(made.clozes), made.own) == (f1, kept, 0.2)
    assert made.best == f1[len(kept) - 1]


ASKED = "CountryBordersCountry"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    names = {name for row in TRAIN for name in row.names if name.isalpha()}
    return save(tmp_path_factory.mktemp("model"), sorted({*names, *"borders shares with is next to".split()}))


@pytest.fixture
def text(tmp_path: Path) -> Path:
    rows = [row for row in TRAIN if row.query.relation == ASKED and row.objects]
    spans = ["borders", "shares a border with", "is next to"]
    lines = [f"{row.query.subject} {spans[n % 3]} {row.names[0]}." for n, row in enumerate(rows)]
    path = tmp_path / "text.txt"
    path.write_text("\n".join([*lines, "Nothing is said here."]) + "\n")
    return path


def test_a_recipe_asks_the_clozes_that_a_text_gave(command: Command, model: Path, text: Path) -> None:
    given = ("--corpus", text, "--edition", "mini", "--model", model, "--out", "mined.toml")
    shown, said = command.done(
        "train", "mined-prompts", *given, "--relation", "country-borders", "--gain", "0", "--json"
    )
    (made,) = json.loads(shown).values()
    assert "F1 is in sample" in said
    written = Path("mined.toml").read_text()
    assert tomllib.loads(written) == {ASKED: {"clozes": made["clozes"]}}
    assert "F1 is in sample" in written
    assert "SHA-256" in written
    assert str(text.parent) not in written
    again = command.fails("train", "mined-prompts", *given)
    assert "mined.toml is there already, and this command replaces nothing" in again

    table = {"component": "masked", "probe": {"clozes": 1, "component": "li22/probe"}, "frames": "mined.toml"}
    recipe_file(Path("mine.toml"), table)
    asked = ("--edition", "mini", "--split", "train", "--model", model, "--relation", ASKED)
    command.done("predict", "--system", "mine.toml", *asked, "--out", "run")
    backbone, relation = load(model, offline=True), SPACE.relation(ASKED)
    probe = part("probe", clozes={ASKED: made["clozes"]}, component="li22/probe")
    rows = [row for row in TRAIN if row.query.relation == ASKED]
    direct = MaskedGenerator(backbone, MINI, {ASKED: relation}, TRAIN, probe).generate([row.query for row in rows])
    kept = [json.loads(line) for line in gzip.decompress(Path("run/candidates.jsonl.gz").read_bytes()).splitlines()]
    best = {row["SubjectEntity"]: row["candidates"][0] for row in kept}
    assert len(best) == len(rows)
    for one in direct:
        first = best[one.query.subject]
        assert first["score"] == pytest.approx(one.candidates[0].score, abs=1e-6)
        assert first["object"].casefold() == one.candidates[0].text.casefold()


def test_an_average_is_what_a_generator_of_several_clozes_gives(model: Path) -> None:
    rows = [row for row in TRAIN if row.query.relation == ASKED][:4]
    clozes = ("{subject} borders {mask}.", "{mask} is next to {subject}.")
    backbone, relation = load(model, offline=True), SPACE.relation(ASKED)
    scored = TrainF1(backbone, MINI, relation, rows)
    asked = [scored.answers(cloze) for cloze in clozes]
    probe = part("probe", clozes={ASKED: clozes}, component="li22/probe")
    for one in MaskedGenerator(backbone, MINI, {ASKED: relation}, rows, probe).generate([row.query for row in rows]):
        place = [row.query for row in rows].index(one.query)
        for candidate in one.candidates:
            mean = sum(found[place].get(candidate.text, 0.0) for found in asked) / 2
            assert candidate.score == pytest.approx(mean)
    assert 0 <= scored.of(*asked) <= 1


def test_frames_of_a_masked_model_come_before_its_own_clozes(tmp_path: Path, model: Path) -> None:
    path = tmp_path / "mined.toml"
    path.write_text('[country-borders]\nclozes = ["{subject} borders {mask}."]\n')
    recipe_of({"component": "masked", "frames": str(path)})
    for wrong, sentence in {
        '[borders]\nclozes = ["{subject} borders {mask}."]': "frames names 'borders'",
        '[country-borders]\nclozes = ["{subject} borders."]': "needs {subject} and {mask}",
        "[country-borders]\nclozes = [3]": "clozes",
        "[country-borders]\nclozes = 3": "clozes is 3: give a list",
    }.items():
        path.write_text(wrong)
        with pytest.raises(InputError) as error:
            recipe_of({"component": "masked", "frames": str(path)})
        assert sentence in str(error.value)
        assert "mined.toml" in str(error.value) or "frames" in str(error.value)


@pytest.mark.parametrize("kind", ["empty", "left to right"])
def test_a_text_or_a_model_of_no_use_is_named(command: Command, model: Path, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "text.txt"
    path.write_text("Nobody goes there.\n")
    wrong = shutil.copytree(model, tmp_path / "causal")
    (wrong / "config.json").write_text('{"model_type": "gpt2"}')
    given = ("--corpus", path, "--edition", "mini", "--model", model if kind == "empty" else wrong, "--out", "o.toml")
    said = command.fails("train", "mined-prompts", *given)
    assert ("none of its 1 sentence holds" if kind == "empty" else "fills no masks") in said
    assert not Path("o.toml").exists()


def test_rows_that_another_split_asks_too_are_left_out(
    command: Command, model: Path, text: Path, tmp_path: Path
) -> None:
    rows = [row for row in TRAIN if row.query.relation == ASKED and row.objects][:4]
    known = [
        {
            "SubjectEntity": row.query.subject,
            "Relation": ASKED,
            "ObjectEntities": [row.names[0]],
            "ObjectEntitiesID": [row.objects[0].id],
        }
        for row in rows
    ]
    again = known[0] | {"SubjectEntity": rows[0].query.subject.upper()}
    for split, lines in (("train", known), ("val", [again]), ("test", [again])):
        jsonl(tmp_path / "data" / "lmkbc2023" / f"{split}.jsonl", lines)
    given = ("--corpus", text, "--edition", "2023", "--data", tmp_path / "data", "--model", model, "--out", "m.toml")
    command.done("train", "mined-prompts", *given, "--relation", ASKED, "--offline")
    assert "3 rows of 2023/train, without 1 that another split asks too" in Path("m.toml").read_text()
