"""Plug-ins: found in the right place, and reported with their file when they are wrong."""

import pickle
import re
import shutil
import unicodedata
from pathlib import Path

import pytest
from command import Command

from lmkbc import InputError, Workspace
from lmkbc.recipe import read_recipe

ROOT = Path(__file__).resolve().parent.parent
RELATION = """
from lmkbc import EntityType, Relation
RELATION = Relation(
    name="{name}", names=("{spelling}",), property="P1", subject_type=EntityType("thing", "Q1"),
    object_type=EntityType("thing", "Q1"), kind="{kind}", may_be_empty=False, definition="d",
    clozes=("{cloze}",), question="What of {{subject}}?", triple="has", statement="{{subject}} has {{object}}.",
)
"""


def relation(folder: Path, **changes: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    fields = {"name": "thing", "spelling": "Thing", "kind": "entity", "cloze": "{subject} has {mask}."} | changes
    path = folder / f"{fields['name']}.py"
    path.write_text(RELATION.format(**fields))
    return path


def test_every_relation_of_every_edition_has_a_module() -> None:
    space = Workspace()
    for edition in space.editions.values():
        assert set(edition.relations) <= set(space.relations)
    assert len({id(relation) for relation in space.relations.values()}) == len([*ROOT.glob("relations/*.py")])
    assert len(space.editions) == len([*ROOT.glob("eval/*.py")])
    assert space.relation("CompoundHasParts") is space.relation("ChemicalCompoundElement")


def test_plugins_are_picklable() -> None:
    space = Workspace()
    for value in [*space.relations.values(), *space.editions.values()]:
        assert pickle.loads(pickle.dumps(value)) == value


def test_a_misspelt_name_gets_a_suggestion(tmp_path: Path) -> None:
    space = Workspace()
    with pytest.raises(InputError, match="did you mean 'CompoundHasParts'"):
        space.relation("CompoundHasPart")
    with pytest.raises(InputError, match="unknown edition '20233': did you mean '2023'"):
        space.edition("20233")
    with pytest.raises(InputError, match="unknown system 'embeded': did you mean 'embedded'"):
        read_recipe(space, "embeded")


@pytest.mark.parametrize(
    ("written", "changed", "told"),
    [
        ("may_be_empty=False", 'may_be_empty="yes"', "may_be_empty is 'yes': give True or False"),
        ('names=("Thing",)', 'names="Thing"', "names is 'Thing': give a list of strings"),
        ('names=("Thing",)', "names=()", "names"),
        ('subject_type=EntityType("thing", "Q1")', 'subject_type="Q1"', "subject_type is 'Q1': give EntityType(...)"),
        ('definition="d"', 'definition="d", unit=3', "unit is 3 but kind is 'entity'"),
        ('definition="d"', 'definition="d", cardinality={"2022": (0, 1.5)}', "cardinality['2022'][1] is 1.5"),
        ('definition="d"', 'definition="d", shape=Shape(stop="the")', "shape.stop is 'the': give a set"),
        (
            'definition="d"',
            'definition="d", shape=Shape(closed={"a": "b"})',
            "shape.closed['a'] is 'b': give a list of",
        ),
        ("has {mask}.", "has nothing.", "clozes holds '{subject} has nothing.': it needs {mask} and {subject}"),
        ("has {mask}.", "{mask} has {mask}.", "each exactly once"),
        ('kind="entity"', 'kind="thing"', "kind is 'thing'"),
        (None, "X = 1", "RELATION is missing"),
        (None, "RELATION = 1", "RELATION is a int"),
        (None, "1 +", "SyntaxError"),
        (None, "import nowhere", "nowhere"),
    ],
)
def test_a_module_that_is_wrong_is_told_by_file_and_field(
    tmp_path: Path, written: str | None, changed: str, told: str
) -> None:
    path = relation(tmp_path / "relations")
    text = path.read_text().replace("import EntityType", "import EntityType, Shape")
    assert written is None or written in text
    path.write_text(changed if written is None else text.replace(written, changed))
    with pytest.raises(InputError, match=re.escape(told)) as error:
        _ = Workspace(tmp_path).relations
    assert str(error.value).startswith(f"{path}: " if written else str(path))


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ('"<sha256>"', "sha256 is '<sha256>': give the 64 digits that 'sha256sum FILE' prints"),
        (f'"{"A" * 64}"', "sha256 is 'AAAA"),
        (f'"{"a" * 63}"', "sha256 is 'aaaa"),
    ],
)
def test_what_is_no_digest_is_refused(tmp_path: Path, changed: str, told: str) -> None:
    relation(tmp_path / "relations")
    (tmp_path / "eval").mkdir()
    (tmp_path / "eval" / "2031.py").write_text(
        f'from lmkbc import Download\nDownload("https://x.example/y", {changed})\n'
    )
    with pytest.raises(InputError, match=f"^{re.escape(str(tmp_path / 'eval' / '2031.py'))}: .*{re.escape(told)}"):
        _ = Workspace(tmp_path).editions


def test_a_given_directory_comes_first_and_the_rest_falls_back(tmp_path: Path) -> None:
    relation(tmp_path / "relations")
    space = Workspace(tmp_path)
    assert set(space.relations) == {"thing", "Thing", *Workspace().relations}
    assert set(space.own_relations) == {"thing"}
    assert space.folders("eval") == [ROOT / "eval"]


def test_two_modules_of_one_name(tmp_path: Path) -> None:
    first = relation(tmp_path / "relations")
    second = relation(tmp_path / "relations", name="zebra")
    with pytest.raises(InputError) as error:
        _ = Workspace(tmp_path).relations
    assert str(error.value) == f"{second}: the name 'Thing' is already taken by {first}; rename one"


@pytest.mark.parametrize(
    ("thing", "zebra", "told"),
    [
        ('inverse_of="zebr"', "", "thing.py: inverse_of names 'zebr', which no module has: did you mean 'zebra'"),
        ('inverse_of="zebra"', "symmetric=True", "inverse_of names 'zebra', whose own other side is 'zebra'"),
        ('inverse_of="zebra"', 'object_type=EntityType("x", "Q2")', "whose subjects are not of the type"),
        ('symmetric=True, object_type=EntityType("x", "Q2")', "", "symmetric is True, but subjects"),
        ('symmetric=True, inverse_of="zebra"', "", "inverse_of is 'zebra', but the relation is symmetric"),
        ('inverse_of="zebra"', 'inverse_of="thing"', None),
        ('inverse_of="zebra"', "", None),
    ],
)
def test_the_other_side_of_a_relation_is_there_and_agrees(
    tmp_path: Path, thing: str, zebra: str, told: str | None
) -> None:
    for name, fields in (("thing", thing), ("zebra", zebra)):
        path = relation(tmp_path / "relations", name=name, spelling=name.title())
        text = path.read_text()
        if "object_type" in fields:
            text = text.replace('object_type=EntityType("thing", "Q1"), ', "")
        path.write_text(text.replace('definition="d"', f'definition="d", {fields}'.rstrip(", ")))
    if told is None:
        assert Workspace(tmp_path).relation("Thing").other_side() == "zebra"
        return
    with pytest.raises(InputError, match=re.escape(told)):
        _ = Workspace(tmp_path).relations


def test_an_edition_that_names_an_unknown_relation(tmp_path: Path) -> None:
    """Also where the file changed since it was read."""
    shutil.copytree(ROOT / "eval", tmp_path / "eval", ignore=shutil.ignore_patterns("bench"))
    path = tmp_path / "eval" / "mini.py"
    assert "mini" in Workspace(tmp_path).editions
    path.write_text(path.read_text().replace("CountryBordersCountry", "CountryBorderCountry"))
    with pytest.raises(InputError, match="'CountryBorderCountry', which no module in relations/ has; did you mean"):
        _ = Workspace(tmp_path).editions


def test_absent_data_is_said_with_the_command_that_fetches_it(tmp_path: Path) -> None:
    space = Workspace(data=tmp_path)
    with pytest.raises(InputError, match="lmkbc data fetch 2023"):
        space.queries(space.edition("2023"), "test")
    with pytest.raises(InputError, match="has no split 'tset': did you mean 'test'"):
        space.queries(space.edition("2023"), "tset")
    with pytest.raises(InputError, match="has no gold"):
        space.examples(space.edition("2023"), "test")


def test_the_bundled_edition_needs_no_data(tmp_path: Path) -> None:
    space = Workspace(data=tmp_path)
    assert space.queries(space.edition("mini"), "dev")


@pytest.mark.parametrize(
    ("recipe", "told"),
    [
        ("description = 1 +", "not valid TOML"),
        ("description = 'x'", "lacks generate"),
        ("descripton = 'x'", "has no setting 'descripton': did you mean 'description'"),
    ],
)
def test_a_wrong_recipe_is_told_by_file_and_field(tmp_path: Path, recipe: str, told: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(recipe)
    with pytest.raises(InputError, match=f"{re.escape(str(path))}.*{re.escape(told)}"):
        read_recipe(Workspace(), str(path))


@pytest.mark.parametrize(
    ("here", "relation", "told"),
    [
        (["2022", "2024", "2026"], None, "Edition 2026: the newest whose data is here. --edition names"),
        (["2022", "2023", "2024"], None, "Edition 2024: the newest whose data is here. --edition names"),
        (["2023", "2026"], "river-countries", "Edition 2023: the newest whose data is here. --edition names"),
        (
            [],
            None,
            "No data of edition 2026 here: using the small bundled edition 'mini'. 'lmkbc data fetch 2026'",
        ),
        ([], "autobiography", "No data of edition 2023 here, so none is read"),
    ],
)
def test_the_newest_edition_with_data_is_the_default(
    tmp_path: Path, here: list[str], relation: str | None, told: str, command: Command
) -> None:
    for name in here:
        (tmp_path / f"lmkbc{name}").mkdir()
        (tmp_path / f"lmkbc{name}" / "train.jsonl").write_text("")
    words = ("predict", "--split", "train") if relation is None else ("ask", "Chad", relation)
    _, _, said = command(*words, "--data", tmp_path, "--system", "bl22-empty")
    assert said.startswith(told)


def test_a_split_is_known_by_its_queries(data_dir: Path) -> None:
    space = Workspace(data=data_dir)
    for name, split in (("2023", "train"), ("2023", "val"), ("2022", "dev"), ("2026", "test"), ("mini", "val")):
        edition = space.edition(name)
        pairs = {(query.subject, query.relation) for query in space.queries(edition, split)[:40]}
        for first in ("mini", "2023", name):
            assert space.split_of(pairs, space.edition(first)) == (edition, split)
        assert space.split_of(pairs) == (edition, split)
        other = {(f" {unicodedata.normalize('NFD', subject)}", relation.lower()) for subject, relation in pairs}
        assert space.split_of(pairs | other) == (edition, split)
    assert space.split_of({("nobody", "RiverBasinsCountry")}, edition) is None


@pytest.mark.parametrize(
    ("folder", "written", "told"),
    [
        ("own", 'name = "2025"', "own/lmkbc.toml: name is '2025', which is the name of another edition: give your"),
        ("own", 'name = "mini"', "name is 'mini', which"),
        ("2025", "", "2025/lmkbc.toml: name is '2025', by its folder, which is the name of another edition"),
        ("2025", 'name = "own"', ""),
    ],
)
def test_a_workspace_is_not_named_as_another_edition(tmp_path: Path, folder: str, written: str, told: str) -> None:
    relation(tmp_path / folder / "relations")
    (tmp_path / folder / "lmkbc.toml").write_text(written)
    space = Workspace(tmp_path / folder, trust=True)
    if told:
        with pytest.raises(InputError, match=re.escape(told)):
            space.editions  # noqa: B018
    else:
        assert "2025" in space.editions
