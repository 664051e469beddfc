"""Every relation keeps to this, one in `relations/` as any other: its words, its names, and what the data say of it."""

import importlib.util
import json
import pickle
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opened import part
from space import SPACE
from typer.testing import CliRunner

from lmkbc import InputError, Relation, Workspace
from lmkbc.cli import build

FILES = sorted(SPACE.folders("relations")[0].glob("*.py"))
EDITIONS = {name: edition for name, edition in SPACE.editions.items() if any(edition.splits.values())}
"""Those whose splits are published somewhere."""


def load(path: Path) -> Relation:
    spec = importlib.util.spec_from_file_location(f"relation_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    relation = module.RELATION
    assert isinstance(relation, Relation)
    return relation


RELATIONS = {path.stem: load(path) for path in FILES}
OWNERS = {name: relation for relation in RELATIONS.values() for name in relation.names}

every_relation = pytest.mark.parametrize("relation", RELATIONS.values(), ids=RELATIONS.keys())


def rows(data_dir: Path, edition: str, split: str = "*") -> Iterator[dict[str, Any]]:
    for path in sorted((data_dir / EDITIONS[edition].folder).glob(f"{split}.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            yield json.loads(line)


def objects(row: dict[str, Any], edition: str) -> list[Any]:
    """The scored column without the ways in which editions write "no object"."""
    return [value for value in row[EDITIONS[edition].column] if value not in ("", [], [""])]


def spellings(relation: Relation) -> dict[str, str]:
    """Every spelling that the shape knows, in lower case, and the name it stands for."""
    shape = relation.shape
    pairs = [(name, name) for name in shape.closed]
    pairs += [(variant, name) for name, variants in shape.closed.items() for variant in variants]
    pairs += shape.variants.items()
    known: dict[str, str] = {}
    for variant, name in pairs:
        assert known.setdefault(variant.lower(), name) == name, f"{variant!r} stands for two names"
    return known


def test_a_relation_is_named_after_its_file_and_says_what_it_is() -> None:
    assert {stem.replace("_", "-") for stem in RELATIONS} == {relation.name for relation in RELATIONS.values()}
    assert [path.name for path in FILES if not path.read_text(encoding="utf-8").startswith('"""')] == []


@every_relation
def test_the_workspace_finds_a_relation_by_all_its_names(relation: Relation) -> None:
    for name in (relation.name, *relation.names):
        found = SPACE.relation(name)
        assert (found.name, found.names) == (relation.name, relation.names)
    assert pickle.loads(pickle.dumps(relation)) == relation


def test_every_spelling_of_every_edition_belongs_to_one_relation(data_dir: Path) -> None:
    counts = Counter(name for relation in RELATIONS.values() for name in relation.names)
    assert set(counts.values()) == {1}
    assert {row["Relation"] for edition in EDITIONS for row in rows(data_dir, edition)} <= set(counts)


def test_cardinalities_are_those_of_the_train_splits(data_dir: Path) -> None:
    sizes: dict[str, dict[str, list[int]]] = {name: {} for name in RELATIONS}
    stems = {relation.name: stem for stem, relation in RELATIONS.items()}
    for edition in EDITIONS:
        for row in rows(data_dir, edition, "train"):
            found = sizes[stems[OWNERS[row["Relation"]].name]]
            found.setdefault(edition, []).append(len(objects(row, edition)))
    for stem, relation in RELATIONS.items():
        expected = {edition: (min(counts), max(counts)) for edition, counts in sizes[stem].items()}
        assert dict(relation.cardinality) == expected, stem
        for edition, counts in sizes[stem].items():
            assert relation.nullable(edition) == (0 in counts), (stem, edition)


@every_relation
def test_declared_emptiness_is_what_any_edition_shows(relation: Relation) -> None:
    shown = [fewest == 0 for fewest, _ in relation.cardinality.values()] or [relation.may_be_empty]
    assert relation.may_be_empty == any(shown)
    assert relation.nullable("an edition to come") == relation.may_be_empty


@every_relation
def test_templates_read_as_sentences(relation: Relation) -> None:
    assert len(set(relation.clozes)) == len(relation.clozes)
    for cloze in relation.clozes:
        text = cloze.format(subject="SUBJECT", mask="[MASK]")
        assert text.count("SUBJECT") == text.count("[MASK]") == 1
        assert text.endswith(".")
    assert relation.question.format(subject="SUBJECT").endswith("?")
    assert relation.statement.format(subject="SUBJECT", object="OBJECT").endswith(".")
    assert relation.definition.endswith(".")
    assert not relation.triple.endswith(".")


DALAL = {  # clozes of each relation in Dalal et al. 2022
    "ChemicalCompoundElement": 5,
    "CompanyParentOrganization": 5,
    "CountryBordersWithCountry": 13,
    "CountryOfficialLanguage": 8,
    "PersonCauseOfDeath": 4,
    "PersonEmployer": 12,
    "PersonInstrument": 3,
    "PersonLanguage": 5,
    "PersonPlaceOfDeath": 3,
    "PersonProfession": 6,
    "RiverBasinsCountry": 7,
    "StateSharesBorderState": 15,
}


def test_paraphrases_are_as_many_as_recipes_ask_and_none_repeats() -> None:
    relations = SPACE.relations
    for name, asked in DALAL.items():
        relation = relations[name]
        clozes = [*relation.clozes, *relation.paraphrases]
        assert len(clozes) >= asked, name
        assert len({cloze.casefold() for cloze in clozes}) == len(clozes), name
        assert len(part("probe", clozes={name: asked}).templates(relation)) == asked
        assert part("probe").templates(relation) == relation.clozes == OWNERS[name].clozes
        for cloze in relation.paraphrases:
            assert cloze.endswith(".")
            assert cloze[0].isupper() or cloze[0] == "{"
            assert "  " not in cloze


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('spouses = ["{subject} {mask}."]', r"words 'spouses', which no module here is named: did you mean 'spouse'"),
        ('spouse = ["{subject} only."]', "needs {mask} and {subject}, each exactly once"),
        ('spouse = "{subject} {mask}."', "spouse: give a list of clozes"),
        ("spouse = [3]", "spouse: give a list of clozes"),
        ("spouse = [", "not valid TOML"),
    ],
)
def test_wrong_paraphrases_are_named_with_their_file(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "relations").mkdir()
    (tmp_path / "relations" / "spouse.py").write_bytes((SPACE.folders("relations")[0] / "spouse.py").read_bytes())
    assert Workspace(tmp_path).relation("PersonHasSpouse").paraphrases == ()
    (tmp_path / "relations" / "paraphrases.toml").write_text(text)
    with pytest.raises(InputError, match=reason) as raised:
        _ = Workspace(tmp_path).relations
    assert "paraphrases.toml" in str(raised.value)


@every_relation
def test_wikidata_ids_are_well_formed(relation: Relation) -> None:
    assert relation.property[0] == "P"
    assert relation.property[1:].isdigit()
    for entity_type in (relation.subject_type, relation.object_type):
        assert entity_type.noun == entity_type.noun.strip() != ""
        for qid in (entity_type.qid, *entity_type.classes):
            assert qid[0] == "Q"
            assert qid[1:].isdigit()
        assert len({entity_type.qid, *entity_type.classes}) == 1 + len(entity_type.classes)
    assert relation.unit_id is None or (relation.unit_id[0] == "Q" and relation.unit_id[1:].isdigit())


@every_relation
def test_all_that_a_module_knows_is_shown(relation: Relation) -> None:
    result = CliRunner().invoke(build(), ["relations", "show", relation.name, "--json"])
    assert result.exit_code == 0, result.output
    shown = json.loads(result.stdout)
    assert tuple(shown["clozes"]) == relation.clozes
    assert set(shown["shape"]["stop"]) == relation.shape.stop
    assert [one["cloze"] for one in shown["preconditions"]] == [one.cloze for one in relation.preconditions]


@every_relation
def test_no_spelling_is_ambiguous_or_stopped(relation: Relation) -> None:
    known = spellings(relation)
    assert not set(known) & relation.shape.stop
    for variant, name in relation.shape.variants.items():
        assert known.get(name.lower(), name) == name, f"{variant!r} leads to {name!r}, which is itself replaced"
    assert all(word == word.lower() for word in relation.shape.stop)


def test_all_elements_and_nobel_prizes_are_there() -> None:
    assert [len(RELATIONS[name].shape.closed) for name in ("compound_elements", "nobel_prize")] == [118, 6]


@every_relation
def test_shapes_keep_the_train_gold(relation: Relation, data_dir: Path) -> None:
    """Closed lists hold nearly all gold names, stop words hardly any, numbers stay in bounds."""
    known, shape = spellings(relation), relation.shape
    golds = [
        [value] if isinstance(value, str) else value
        for edition in EDITIONS
        for row in rows(data_dir, edition, "train")
        if row["Relation"] in relation.names
        for value in row["ObjectEntities"]
        if value not in ("", [], [""])
    ]
    if relation.kind == "number":
        values = [float(names[0]) for names in golds]
        assert shape.minimum is not None
        assert shape.maximum is not None
        assert all(shape.minimum <= value <= shape.maximum for value in values)
        assert not shape.integer or all(value.is_integer() for value in values)
    elif shape.closed:
        covered = sum(any(name.lower() in known for name in names) for names in golds)
        assert covered >= 0.97 * len(golds)
    stopped = sum(names[0].lower() in shape.stop for names in golds)
    assert stopped <= 0.005 * len(golds), [names[0] for names in golds if names[0].lower() in shape.stop]


@every_relation
def test_2022_gold_accepts_what_variants_make_of_it(relation: Relation, data_dir: Path) -> None:
    """Replacing a gold spelling by its canonical name may cost a few objects of the strings editions, not many."""
    known = spellings(relation)
    golds = [
        {name.lower() for name in names}
        for row in rows(data_dir, "2022", "train")
        if row["Relation"] in relation.names
        for names in row["ObjectEntities"]
    ]
    lost = [names for names in golds if all(known.get(name, name).lower() not in names for name in names)]
    assert len(lost) <= 0.03 * len(golds), lost
