"""Classes of one's own, which have no QID: asked by their names, with near names, and never two in one unnoticed."""

import re
from pathlib import Path

import polars as pl
import pytest
from command import Command

from lmkbc import EntityType

BUILD = ("build", "--system", "prior", "--subjects", "s.csv", "--out", "kb")


@pytest.fixture
def shop(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    command.done("init", "shop", "--relation", "supplier:entity", "--relation", "founded:date")
    monkeypatch.chdir(tmp_path / "shop")
    return command


def typed(**types: str) -> None:
    """Write the type of a relation's subjects into its module."""
    for name, text in types.items():
        module = Path(f"relations/{name}.py")
        module.write_text(re.sub(r"subject_type=EntityType\(.*\)", f"subject_type={text}", module.read_text()))


def asked(shop: Command) -> tuple[set[tuple[str, str]], str]:
    told = shop.done(*BUILD)[1]
    return set(pl.read_parquet("kb/nothing").select("subject", "relation").iter_rows()), told


def test_a_class_of_one_s_own_is_asked_by_its_name_in_any_case(shop: Command) -> None:
    typed(supplier='EntityType("Bauteil")', founded='EntityType("company")')
    Path("s.csv").write_text("name,class\nRad,bauteil\nAchse,Bauteil\nBosch,company\nKuka,Compnay\n")
    queries, told = asked(shop)
    assert queries == {("Rad", "supplier"), ("Achse", "supplier"), ("Bosch", "founded")}
    assert "1 of 4 subjects, first 'Compnay' (did you mean 'company'?); give a class by name or QID" in told
    assert "one QID" not in told
    shop.done("relations", "check")


def test_classes_that_are_all_misspelt_name_one_s_own(shop: Command) -> None:
    typed(supplier='EntityType("Bauteil")', founded='EntityType("Firma")')
    Path("s.csv").write_text("name,class\nRad,Bauteli\n")
    assert "that the relations ask about (did you mean 'Bauteil'?): give a column 'class'" in shop.fails(*BUILD)
    Path("s.csv").write_text("name\nRad\n")
    assert "(known are: Bauteil, Firma)" in shop.fails(*BUILD)


@pytest.mark.parametrize(
    ("supplier", "founded", "told"),
    [
        ('EntityType("Bauteil", "Q35120")', 'EntityType("Firma", "Q35120")', "'Bauteil' and 'Firma' have one QID, Q35"),
        (
            'EntityType("work", "Q1")',
            'EntityType("Work", "Q2")',
            "two classes are called 'work', Q1 and Q2; by that na",
        ),
        ('EntityType("Firma", "Q1")', 'EntityType("Firma")', "two classes are called 'firma', Q1 and firma; by that"),
    ],
)
def test_two_classes_with_one_name_or_qid_are_told(shop: Command, supplier: str, founded: str, told: str) -> None:
    typed(supplier=supplier, founded=founded)
    Path("s.csv").write_text("name,class\nRad,Q1\nAchse,Q2\nBosch,Firma\nNabe,work\nNetz,Bauteil\n")
    assert told in asked(shop)[1]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('EntityType("")', "the noun of a type is '': give a word"),
        ('EntityType("Q5")', "the noun of a type is 'Q5': give a word"),
        ('EntityType("Firma", "P31")', "'Firma' has 'P31' in place of a QID: leave it out if the class is one of your"),
        ('EntityType("Firma", "q5")', "'Firma' has 'q5' in place of a QID"),
    ],
)
def test_a_wrong_type_is_named_with_its_module(shop: Command, text: str, told: str) -> None:
    typed(supplier=text)
    Path("s.csv").write_text("name\nRad\n")
    error = shop.fails(*BUILD)
    assert "supplier.py" in error
    assert told in error


def test_what_a_type_without_a_qid_is_called_does_not_depend_on_case() -> None:
    assert EntityType("Bauteil").qid == EntityType("bauteil").qid
    assert EntityType("Bauteil").qid != EntityType("Bauteile").qid
