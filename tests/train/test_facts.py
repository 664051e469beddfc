import gzip
import json
import lzma
import tarfile
from io import BytesIO
from pathlib import Path

import pytest
from space import MINI, SPACE

from lmkbc import InputError, LmkbcError, Workspace
from lmkbc.train.corpus import HeldOut, gather, split
from lmkbc.types import Fact

KAMEL = Path("kamel/KAMEL.tar.xz")
SILVER = Path("silver2023")


SECRET = SPACE.queries(MINI, "val")[0].subject


def fact(subject: str, *objects: str, relation: str = "P17") -> Fact:
    return Fact(subject, relation, ("{subject} is in {mask}.",), objects, ("",) * len(objects))


def write_kamel(data: Path, rows: dict[str, list[object]]) -> Path:
    path = data / KAMEL
    path.parent.mkdir(parents=True, exist_ok=True)
    with lzma.open(path, "wb") as packed, tarfile.open(fileobj=packed, mode="w") as archive:
        for name, lines in rows.items():
            raw = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines).encode()
            member = tarfile.TarInfo(f"KAMEL/{name}")
            member.size = len(raw)
            archive.addfile(member, BytesIO(raw))
    return path


def write_silver(data: Path, relation: str, rows: list[tuple[str, list[str]]]) -> None:
    (data / SILVER).mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({"SubjectEntity": s, "ObjectEntities": o, "Relation": relation}) for s, o in rows]
    (data / SILVER / f"{relation}.jsonl.gz").write_bytes(gzip.compress("\n".join(lines).encode()))


def test_held_out_subjects_go_under_all_their_names() -> None:
    held = HeldOut.of(Workspace(), [(SECRET.upper(), "Its Other Name"), ("Unrelated", "Also Unrelated")])
    facts = [fact(SECRET), fact(f"  {SECRET.lower()} "), fact("its other  name"), fact("Unrelated"), fact("Nobody 7")]
    kept, removed = held.without(facts)
    assert [one.subject for one in kept] == ["Unrelated", "Nobody 7"]
    assert removed == 3
    held.check(kept)
    with pytest.raises(LmkbcError, match="held-out subjects"):
        held.check(facts)


@pytest.mark.parametrize(
    "spelt", ["The Seven Seas", "SevenSeas", "Seven Seas (band)", "(The) Seven Seas", "seven-seas"]
)
def test_a_held_out_subject_is_known_however_it_is_spelt(spelt: str) -> None:
    for one, other in (("Seven Seas", spelt), (spelt, "Seven Seas")):
        assert HeldOut.of(Workspace(), [(SECRET, one)]).names(other)
    assert not HeldOut.of(Workspace(), [(SECRET, "Seven Seas")]).names("Seven")


def test_gathering_proves_that_nothing_held_out_is_left(tmp_path: Path) -> None:
    workspace = Workspace(data=tmp_path)
    edition = workspace.edition("mini")
    subject = workspace.queries(edition, "test")[0].subject
    alias = {"rdf": subject, "chosen": None, "alternative": ["Secret Alias"]}
    rows = {
        "P17/train.jsonl": [{"sub_label": name, "obj_label": ["Italy"]} for name in (subject, "Secret Alias", "Free")],
        "P17/dev.jsonl": [{"sub_label": "Metz", "obj_label": ["France"]}],
        "P30/train.jsonl": [{"sub_label": name, "obj_label": ["france", "Europe"]} for name in ("METZ", "Lyon")],
        "P1412/train.jsonl": [{"sub_label": "Ada", "obj_label": ["French"]}, '{"sub_label": broken'],
        "P17/test.jsonl": [{"sub_label": "x", "obj_uri": ["Q1"], "obj_label": [alias]}],
    }
    write_kamel(tmp_path, rows)
    silver = [(subject, ["French"]), ("Free too", ["Q42", "French", "French"]), ("Bob", ["Q1"])]
    write_silver(tmp_path, "PersonSpeaksLanguage", silver)
    corpus = gather(workspace, [tmp_path])
    assert corpus.removed["KAMEL/train"] == (3, 3)
    assert corpus.removed["silver"] == (1, 1)
    assert "overlap of subjects to train on with held-out names: 0" in list(corpus.proof)
    others = {one.subject: one for one in corpus.others}
    assert {name: one.objects for name, one in others.items()} == {
        "Free": ("Italy",),
        "Free too": ("French",),
        "Ada": ("French",),
        "Lyon": ("france", "Europe"),
    }
    assert others["Free"].clozes == ("{subject} is in the country of {mask}.",)
    assert others["Ada"].clozes == others["Free too"].clozes == SPACE.relations["PersonLanguage"].clozes
    assert all(not corpus.held_out.names(one.subject) for one in corpus.challenge)


@pytest.mark.whole
def test_official_splits_share_no_subject_with_what_is_trained_on(data_dir: Path) -> None:
    corpus = gather(Workspace(data=data_dir), [data_dir])
    assert any(line.endswith(": 0") for line in corpus.proof)
    assert corpus.removed["silver"][1] > 100
    assert len(corpus.others) > 300_000


def test_a_split_parts_subjects_not_facts() -> None:
    facts = [fact(f"s{n % 20}", f"o{n}") for n in range(60)]
    some, others = split(facts, 0.25)
    assert len(some) + len(others) == 60
    assert not {one.subject for one in some} & {one.subject for one in others}
    assert len({one.subject for one in others}) == 5


def test_a_name_of_mere_punctuation_is_held_out_too() -> None:
    held = HeldOut(frozenset({"!!!"}), ())
    assert [one.subject for one in held.without([fact("!!!"), fact("???")])[0]] == ["???"]
    assert HeldOut.of(Workspace(), [(SECRET, "!!!")]).names(" !!! ")


def test_a_held_out_split_without_its_train_split_still_counts(tmp_path: Path) -> None:
    row = {
        "SubjectEntity": "Only Here",
        "Relation": "CountryBordersCountry",
        "ObjectEntities": [],
        "ObjectEntitiesID": [],
    }
    (tmp_path / "lmkbc2023").mkdir()
    for split_name in ("val", "test"):
        (tmp_path / "lmkbc2023" / f"{split_name}.jsonl").write_text(json.dumps(row) + "\n")
    held = HeldOut.of(Workspace(data=tmp_path))
    assert held.names("only here")
    assert "2023/val" in held.splits
    (tmp_path / "lmkbc2023" / "test.jsonl").unlink()
    with pytest.raises(InputError, match="the test split of edition 2023 is not in"):
        HeldOut.of(Workspace(data=tmp_path))


def test_sentences_that_name_a_held_out_subject_are_left_out(tmp_path: Path) -> None:
    held = HeldOut(frozenset({"new york", "ada"}), ())
    sentences = ["In NEW-York it rains.", "A new city, York.", "It was Ada's.", "Adamant, it rained."]
    kept, removed = held.unmentioned(sentences)
    assert (kept, removed) == (["A new city, York.", "Adamant, it rained."], 2)
    text = tmp_path / "text.txt"
    text.write_text(f"Nobody at all.\n\nWhy, {SECRET}!\n")
    assert gather(Workspace(), [], ["mini"], text).sentences == ("Nobody at all.",)
    text.write_text(f"Why, {SECRET}!\n")
    with pytest.raises(InputError, match="without a held-out subject"):
        gather(Workspace(), [], ["mini"], text)
