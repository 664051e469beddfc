import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmkbc.link.wordings import key, plausible_typo, variants
from lmkbc.names import as_qid


@pytest.mark.parametrize(
    ("text", "qid"),
    [
        ("Q42", "Q42"),
        (" q42 ", "Q42"),
        ("http://www.wikidata.org/entity/Q42", "Q42"),
        ("https://www.wikidata.org/wiki/Q42", "Q42"),
        ("wd:Q42", "Q42"),
        ("Q0", None),
        ("Q", None),
        ("Q42 (film)", None),
        ("https://example.org/Q42", None),
        ("", None),
    ],
)
def test_ids_in_disguise(text: str, qid: str | None) -> None:
    assert as_qid(text) == qid


def test_key_folds_case_accents_and_punctuation_but_never_to_nothing() -> None:
    assert key("Córdoba, Province") == key("cordoba  province")
    assert key("!!!") == "!!!"
    assert key("🎸") == "🎸"
    assert key("  ") == ""


@pytest.mark.parametrize(
    ("asked", "known", "plausible"),
    [
        ("saxaphone", "saxophone", True),
        ("guitars", "guitar", True),
        ("newcastle", "new castle", True),
        ("iraq", "iran", False),
        ("zambia", "gambia", False),
        ("kura river", "mura river", False),
        ("aba river", "alba river", False),
        ("route 66 highway", "route 67 highway", False),
        ("guitar", "guitar", False),
        ("", "a", False),
    ],
)
def test_plausible_typing_errors(asked: str, known: str, plausible: bool) -> None:
    assert plausible_typo(asked, known) is plausible


def test_variants_in_order_of_promise() -> None:
    assert list(variants("Inn (river)", ("River",)))[:2] == ["Inn", "Inn River"]
    assert "My Life" in list(variants("My Life: A Memoir"))
    assert "guitar" in list(variants("guitars"))
    assert "berry" in list(variants("berries"))
    assert "jazz bass" not in list(variants("jazz basss"))
    assert list(variants("Yana River", ("River",))) == []


def test_variants_leave_historical_countries_alone() -> None:
    assert "Germany" not in list(variants("Germany (1933-1945)"))


@given(st.text(max_size=40))
def test_variants_never_repeat_the_text_or_come_blank(text: str) -> None:
    found = list(variants(text, ("River", "state")))
    assert text not in found
    assert len(set(found)) == len(found)
    assert all(found)
