import pytest

from lmkbc.names import folded_key, name_key


def test_key_folds_case_accents_and_punctuation_but_never_to_nothing() -> None:
    assert name_key("Córdoba, Province") == name_key("cordoba  province")
    assert name_key("!!!") == "!!!"
    assert name_key("🎸") == "🎸"
    assert name_key("  ") == ""


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Canal +", "Canal", False),
        ("Disney +", "Disney", False),
        ("C #", "C", False),
        ("Sagittarius A *", "Sagittarius A", False),
        ("Canal +", "Canal+", True),
        ("C ++", "c++", True),
        ("Canal\u00a0+ ", "canal+", True),
        ("(Canal +)", "Canal+", True),
        ("A + B", "A B", True),
        ("Canal  +", "Canal", True),
        ("+", "*", False),
    ],
)
def test_signs_at_the_end_distinguish_names_behind_a_blank_too(one: str, other: str, same: bool) -> None:
    assert (name_key(one) == name_key(other)) is same


@pytest.mark.parametrize(
    "names",
    [
        ("C", "C++", "C#", "C*", "C\uff0b"),
        ("F", "F#"),
        ("Model S", "Model S+"),
        ("NET", ".NET"),
        ("hack", ".hack"),
        ("A", "A*", "A+"),
        ("C-algebra", "C*-algebra"),
        ("Disney", "Disney+"),
        ("Na", "Na\u207a"),
        ("2.5", "25", "2 5"),
        ("+/-", "!!!", "+", "*"),
        ("A&P", "AP"),
        ("Evolut PRO+ 23", "Evolut PRO 23"),
    ],
)
def test_signs_that_distinguish_names(names: tuple[str, ...]) -> None:
    assert len({*map(name_key, names)}) == len(names)


@pytest.mark.parametrize(
    "names",
    [
        ("C++", "c\uff0b\uff0b"),
        ("U.S.A.", "USA", "U.S.A", "U. S. A.", "u s a"),
        ("St. Louis", "St Louis", "ST. LOUIS"),
        ("Acme Inc.", "Acme, Inc", "Acme Inc"),
        ("J.R.R. Tolkien", "J. R. R. Tolkien", "JRR Tolkien", "J R R Tolkien"),
        ("...And Justice", "And Justice", "\u2026and justice"),
        ("7-Up", "7 Up"),
        ("No. 5", "No 5"),
        ("Will.i.am", "will i am"),
        ("*NSYNC", "#NSYNC", "Nsync"),
        ("Yahoo!", "yahoo"),
        ("Na\u207a", "Na+"),
        ("A-", "A"),
        ("Pok\u00e9mon+", "Pokemon+"),
        ("C++11", "C++ 11"),
    ],
)
def test_signs_that_say_nothing(names: tuple[str, ...]) -> None:
    assert len({*map(name_key, names)}) == 1


def test_names_of_the_2026_edition_are_compared_as_its_script_does() -> None:
    assert [*map(folded_key, ("C++", ".NET", "A*", "U.S.A.", "2.5"))] == ["c", "net", "a", "u s a", "2 5"]
