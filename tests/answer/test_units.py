"""Units of measure: each spelling is a unit of pint, and conversion is pint's, with plain digits."""

from decimal import Decimal

import pint
import pytest

from lmkbc.kinds.units import ITEMS, MONEY, OF_LENGTH, OTHERS, converted, item_of_unit, unit_at, unit_of, unit_of_item


@pytest.fixture(scope="module")
def registry() -> pint.UnitRegistry:
    made = pint.UnitRegistry()
    made.define("international_acre = mile ** 2 / 640")
    return made


@pytest.mark.parametrize("unit", sorted({*OF_LENGTH, *OTHERS, *ITEMS.values()} - {*MONEY}))
def test_each_unit_is_one_of_pint_and_its_first_spelling_means_it(registry: pint.UnitRegistry, unit: str) -> None:
    assert registry.Unit(unit).dimensionality is not None
    spelling = (OF_LENGTH | OTHERS).get(unit, "").split(" ")[0].replace("_", " ")
    if spelling:
        assert unit in unit_at(f"5 {spelling}", 1).units  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("value", "unit", "into", "same"),
    [
        ("10", "mile ** 2", "kilometer ** 2", "25.89988"),
        ("1", "international_acre", "kilometer ** 2", "0.004046856"),
        ("123456789", "meter ** 2", "kilometer ** 2", "123.456789"),
        ("10000", "hectare", "kilometer ** 2", "100"),
        ("32", "degree_Fahrenheit", "degree_Celsius", "0"),
        ("-40", "degree_Fahrenheit", "degree_Celsius", "-40"),
        ("0", "kelvin", "degree_Celsius", "-273.15"),
        ("2800", "degree_Fahrenheit", "degree_Celsius", "1537.778"),
        ("100", "mile / hour", "kilometer / hour", "160.9344"),
        ("1", "kilowatt_hour", "megajoule", "3.6"),
        ("5", "foot", "meter", "1.524"),
        ("2", "hour", "minute", "120"),
        ("1", "gram / centimeter ** 3", "kilogram / meter ** 3", "1000"),
    ],
)
def test_conversion_has_no_noise(value: str, unit: str, into: str, same: str) -> None:
    assert converted(Decimal(value), unit, into) == Decimal(same)


@pytest.mark.parametrize(
    ("unit", "into"), [("foot", "kelvin"), ("meter", "meter ** 2"), ("USD", "EUR"), ("USD", "meter"), ("day", "knot")]
)
def test_other_dimensions_and_other_money_are_not_converted(unit: str, into: str) -> None:
    assert converted(Decimal(5), unit, into) is None
    assert converted(Decimal(5), unit, unit) == 5


@pytest.mark.parametrize("spelling", ["km2", "km²", "sq km", "square kilometres", "square-kilometer", "sq. kms"])
def test_a_relation_may_spell_its_unit_in_any_way(spelling: str) -> None:
    assert unit_of(spelling) == "kilometer ** 2" == unit_of_item("Q712226")
    assert item_of_unit(unit_of(spelling)) == "Q712226"


@pytest.mark.parametrize("noun", ["spectators", "children", "episodes", "people", "", None, "sea miles away"])
def test_what_is_counted_has_no_unit(noun: str | None) -> None:
    assert unit_of(noun) is None


@pytest.mark.parametrize("text", ["5,000 in 2011", "5,000 in the city", "5 a", "5 t", "5 min"])
def test_short_spellings_are_unsure(text: str) -> None:
    found = unit_at(text, text.index(" "))
    assert found is None or not found.sure
