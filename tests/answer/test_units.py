"""Units of measure: each spelling is a unit of pint, and conversion is pint's, with plain digits."""

import pint
import pytest
from small import small_relation

from lmkbc import EntityType
from lmkbc.answer.parse import parse
from lmkbc.kinds.units import ITEMS, OF_LENGTH, OTHERS
from lmkbc.testing.exports import exported, fact


def read(text: str, unit: str | None) -> tuple[str, ...]:
    """Return the numbers in a reply about a relation of this unit."""
    return parse(text, small_relation(kind="number", unit=unit), "x").objects


@pytest.fixture(scope="module")
def registry() -> pint.UnitRegistry:
    made = pint.UnitRegistry()
    for own in ("international_acre = mile ** 2 / 640", "pfund = 500 * gram", "zentner = 50 * kilogram"):
        made.define(own)
    return made


@pytest.mark.parametrize("unit", sorted({*OF_LENGTH, *OTHERS, *ITEMS.values()}))
def test_each_unit_is_one_of_pint_and_its_first_spelling_means_it(registry: pint.UnitRegistry, unit: str) -> None:
    if unit.isupper():
        return  # money is none of pint's
    assert registry.Unit(unit).dimensionality is not None
    spelt = {name: words.split(" ")[0].replace("_", " ") for name, words in (OF_LENGTH | OTHERS).items()}
    if unit in spelt:
        assert read(f"5 {spelt[unit]}", spelt[unit]) == ("5",)
        alike = [one for one in spelt if registry.Unit(one).is_compatible_with(registry.Unit(unit)) and one != "minute"]
        into = alike[(alike.index(unit) + 1) % len(alike)] if unit in alike else alike[0]  # "m" is a meter first
        amount = registry.Quantity(5.0, unit).to(into).magnitude
        if 1e-9 < abs(amount) < 1e9:
            (found,) = read(f"5 {spelt[unit]}", spelt[into])
            assert float(found) == pytest.approx(amount, rel=1e-5)


@pytest.mark.parametrize(
    ("text", "into", "same"),
    [
        ("10 square miles", "km²", "25.89988"),
        ("1 acre", "sq km", "0.004046856"),
        ("123456789 m2", "km2", "123.456789"),
        ("10000 ha", "km2", "100"),
        ("32 °F", "°C", "0"),
        ("-40 °F", "celsius", "-40"),
        ("0 K", "°C", "-273.15"),
        ("2800 °F", "°C", "1537.778"),
        ("100 mph", "km/h", "160.9344"),
        ("1 kWh", "MJ", "3.6"),
        ("5 feet", "m", "1.524"),
        ("2 hours", "min", "120"),
        ("1 g/cm3", "kg/m3", "1000"),
    ],
)
def test_conversion_has_no_noise(text: str, into: str, same: str) -> None:
    assert read(text, into) == (same,)


@pytest.mark.parametrize(
    ("text", "into"), [("5 feet", "K"), ("5 m", "m2"), ("$5", "EUR"), ("$5", "m"), ("5 days", "kn")]
)
def test_other_dimensions_and_other_money_are_not_converted(text: str, into: str) -> None:
    assert read(text, into) == ()
    assert read(text, text.strip("5 ")) == ("5",)


@pytest.mark.parametrize("spelling", ["km2", "km²", "sq km", "square kilometres", "square-kilometer", "sq. kms"])
def test_a_relation_may_spell_its_unit_in_any_way(spelling: str) -> None:
    assert read("500 hectares", spelling) == ("5",)
    written = exported("quickstatements", [fact("5", None, kind="number", literal="5", unit=spelling)])
    assert "\t5U712226 " in written.text


@pytest.mark.parametrize(
    ("unit", "texts"),
    {
        "Euro": "5 DM|5 D-Mark|5 Mark|5 Reichsmark im Jahr 1930|5 German marks|5 DEM|DM 5|SEK 5|kr 5|5 Gulden"
        "|5 alte Kronen|5 Schweizer Franken|5 francs suisses|5 francos|5 liras|5 lire|5 rubli|5 рублей|5 złotych|5 zł"
        "|300日元|5 円|5 Taler|5 Mio. Rubel|5 Äpfel|5 apples|5 canadian dollars|5 kanadische Dollar",
        "CHF": "5 euros|5 belgische Francs|5 D-Mark|5 Euro",
        "USD": "5 Canadian dollars|5 kanadische Dollar|5 dollars canadiens|5 pesos",
        "cm": "5 Pixel|5 pixels|5 píxeles|5 g|5 Gramm|5 Stunden|5 Ellen|5 Mark",
    }.items(),
)
def test_an_amount_in_what_cannot_be_converted_is_unreadable(unit: str, texts: str) -> None:
    assert [(text, read(text, unit)) for text in texts.split("|") if read(text, unit)] == []


@pytest.mark.parametrize(
    ("unit", "text", "numbers"),
    [
        ("Euro", "2.500 DM (ca. 1.278 Euro)", ("1278",)),
        ("Euro", "1.450 Euro (damals 2.836 DM)", ("1450",)),
        ("CHF", "5 Franken", ("5",)),
        ("CHF", "5 francs suisses", ("5",)),
        ("CHF", "5 franchi svizzeri", ("5",)),
        ("USD", "5 amerikanische Dollar", ("5",)),
        ("USD", "5 dólares", ("5",)),
        ("SEK", "5 Kronen", ("5",)),
        ("DM", "5 Deutsche Mark", ("5",)),
        ("cm", "12,5 dm", ("125",)),
        ("cm", "5 Dezimeter", ("50",)),
        ("cm", "5 decimetri", ("50",)),
        ("cm", "30 Zoll", ("76.2",)),
        ("cm", "10 pouces", ("25.4",)),
        ("cm", "10 pulgadas", ("25.4",)),
        ("cm", "10 Fuß", ("304.8",)),
        ("cm", "10 pieds", ("304.8",)),
        ("cm", "10 футов", ("304.8",)),
        ("km2", "1,5 miliona kilometrów kwadratowych", ("1500000",)),
    ],
)
def test_names_of_units_and_currencies_are_known_in_many_languages(
    unit: str, text: str, numbers: tuple[str, ...]
) -> None:
    assert read(text, unit) == numbers


@pytest.mark.parametrize("noun", ["spectators", "children", "episodes", "people", "", None, "sea miles away"])
def test_what_is_counted_has_no_unit(noun: str | None) -> None:
    assert read("5 in 1990", noun) == ("5",)
    assert read("5 miles", noun) == (() if noun is not None else ("5",))


@pytest.mark.parametrize("text", ["5,000 in 2011", "5,000 in the city", "5 a", "5 t", "5 min"])
def test_short_spellings_are_unsure(text: str) -> None:
    assert read(text, "people") == (text.split(maxsplit=1)[0].replace(",", ""),)


TWO_MEASURES = """width | height | The painting is 90 cm high and 120 cm wide.
width | height | The painting is 1.2 m wide and 0.9 m high.
width | height | Height: 90 cm, width: 120 cm
width | height | It has a height of 90 cm and a width of 120 cm.
width | height | 90 cm (height) and 120 cm (width)
Breite | Höhe | Das Gemälde ist 90 cm hoch und 120 cm breit
Breite | Höhe | Die Höhe beträgt 90 cm, die Breite 120 cm.
Breite | Höhe | 90 cm in der Höhe und 120 cm in der Breite
largeur | hauteur | Le tableau mesure 90 cm de haut et 120 cm de large.
largeur | hauteur | Hauteur 90 cm, largeur 120 cm
anchura | altura | Tiene una altura de 90 cm y una anchura de 120 cm.
larghezza | altezza | Il quadro è alto 90 cm e largo 120 cm.
breedte | hoogte | Het is 90 cm hoog en 120 cm breed.
szerokość | wysokość | Obraz ma 90 cm wysokości i 120 cm szerokości.
ширина | высота | Высота 90 см, ширина 120 см"""


@pytest.mark.parametrize("line", TWO_MEASURES.split("\n"))
def test_of_two_measures_that_beside_the_relation_s_name_counts(line: str) -> None:
    width, height, text = line.split(" | ")
    for name, value in ((width, "120"), (height, "90")):
        relation = small_relation(name, kind="number", unit="cm", subject_type=EntityType("painting"))
        assert parse(text, relation, "x").objects == (value,)


def test_of_two_measures_without_a_name_both_are_read() -> None:
    assert parse("90 cm and 120 cm", small_relation("width", kind="number", unit="cm"), "x").objects == ("90", "120")


@pytest.mark.parametrize(
    ("unit", "texts"),
    {
        "km2": "7 apples|It has 12 villages.|about 7 islands|seven islands|7 Äpfel|12 pommes|7 islas|5 aldeias",
        "minutes": "3 Folgen|3 seasons",
        "°C": "3 Personen, 7 Orte",
    }.items(),
)
def test_a_number_of_things_is_no_measure(unit: str, texts: str) -> None:
    assert [(text, read(text, unit)) for text in texts.split("|") if read(text, unit)] == []


@pytest.mark.parametrize(
    ("unit", "texts"),
    {
        "km2": "7 approximately|7 in total|7 according to the census of 2011|7 laut Volkszählung 2011|7 circa"
        "|7 (islands)|7 Quadratkilometer|7 kvadratkilometer|7 neliökilometriä|7 or so|7, plus islands|7 Gesamt",
        "years": "7 Jahre|7 Jahren|7 años|7 ans|7 Lebensjahre|7 anos",
        "minutes": "7 Minuten|7 mins|7 Spielminuten",
        "°C": "7 Grad|7 grados|7 degrees",
        "EUR": "Das Bild, das 7 kostet|7 market value|7 each|7 in cash"
        "|7 netto|7 im Jahr 1905|7 Euros|7 евро|7 ευρώ|7 euros netos|7 ユーロ",
    }.items(),
)
def test_what_is_no_noun_or_may_be_a_unit_leaves_a_number_as_it_is(unit: str, texts: str) -> None:
    assert [(text, read(text, unit)) for text in texts.split("|") if read(text, unit) != ("7",)] == []
