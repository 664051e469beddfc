"""Units of measure: each spelling is a unit of pint, and conversion is pint's, with plain digits."""

import math

import pint
import pytest
from small import small_relation

from lmkbc import EntityType, Shape, registry
from lmkbc.answer.parse import parse
from lmkbc.kinds.units import ITEMS, OF_LENGTH, OTHERS
from lmkbc.testing import State
from lmkbc.testing.exports import exported, fact

NUMBER = registry.KINDS.get("number")


def read(text: str, unit: str | None) -> tuple[str, ...]:
    """Return the numbers in a reply about a relation of this unit."""
    return parse(text, small_relation(kind="number", unit=unit), "The Scream").objects


@pytest.fixture(scope="module")
def registry() -> pint.UnitRegistry:
    made = pint.UnitRegistry()
    for own in (
        "international_acre = mile ** 2 / 640",
        "pfund = 500 * gram",
        "zentner = 50 * kilogram",
        "quintal = 100 * kilogram",
    ):
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


@pytest.mark.parametrize(
    "text",
    "80 x 60 cm|80x60 cm|80X60cm|80 × 60 cm|80*60 cm|80 cm × 60 cm|1,20 m x 80 cm|80 by 60 cm|80 mal 60 cm|80 par 60 cm"
    "|80 por 60 cm|80 per 60 cm|80 bij 60 cm|80 na 60 cm|80 на 60 см|80 х 60 см|80乘60厘米|80 في 60 سم|80 × 60 × 40 cm"
    "|Das Bild misst 80 x 60 cm.|80 cm (31 in) x 60 cm (24 in)|Width x height: 80 cm x 60 cm".split("|"),
)
def test_of_sides_without_a_name_none_is_read(text: str) -> None:
    relation = small_relation("height", kind="number", unit="cm", subject_type=EntityType("painting"))
    assert parse(text, relation, "The Scream").state is State.UNPARSED


@pytest.mark.parametrize(
    ("text", "height"),
    [
        ("80 cm (width) x 60 cm (height)", "60"),
        ("80 cm wide x 60 cm high", "60"),
        ("Height: 60 cm x width: 80 cm", "60"),
        ("80 x 60 cm. Its height is 60 cm.", "60"),
        ("5.2×10^1 cm", "52"),
    ],
)
def test_of_sides_that_with_a_name_is_read(text: str, height: str) -> None:
    relation = small_relation("height", kind="number", unit="cm", subject_type=EntityType("painting"))
    assert parse(text, relation, "The Scream").objects == (height,)


SUMS = """cm | 180 | 1 m 80|1m80|1 Meter 80
cm | 180 | 1 m 80 cm|1 Meter und 80 Zentimeter|1 metro y 80 centímetros|un mètre quatre-vingts
cm | 180 | un metro ochenta|un metro e ottanta|um metro e oitenta|een meter tachtig|jeden metr osiemdziesiąt|1米80
cm | 180 | один метр восемьдесят|1 метр 80 сантиметров
cm | 180 | bir metre seksen|ein Meter achtzig|Er ist einen Meter achtzig groß.
cm | 180.34 | 5 ft 11 in|5'11"|5′11″|5 feet 11 inches|5 foot 11|5 Fuß 11 Zoll|5 pieds 11 pouces
minutes | 80 | 1 Stunde 20 Minuten|1 Stunde und 20 Minuten|eine Stunde zwanzig|1 heure 20 minutes|1 hora y 20 minutos
minutes | 80 | 1 ora e 20 minuti|1 hora e 20 minutos|1 uur en 20 minuten
minutes | 80 | 1 godzina 20 minut|1 час 20 минут|1 saat 20 dakika
minutes | 80 | 1 ساعة و20 دقيقة|1小时20分钟|1時間20分|1h20|1 h 20|une heure et vingt minutes|1 hour, 20 minutes
minutes | 150 | deux heures et demie|2 heures et demie
minutes | 150 | dos horas y media|zweieinhalb Stunden|zwei Stunden und dreißig Minuten
minutes | 80.5 | 1 hour, 20 minutes and 30 seconds|1 h 20 min 30 s
m | 1.5 | un mètre et demi|un metro y medio|un metro e mezzo|anderthalb Meter|1 mètre et demi
kg | 2.5 | 2 kg 500|2 kg 500 g|zwei Kilo fünfhundert|deux kilos cinq cents
years | 1.5 | 1 year 6 months|1 Jahr und 6 Monate
EUR | 5.5 | 5 Euro 50|fünf Euro fünfzig|cinq euros cinquante
m | 1 | 1 m, 80|1 m 3 Bretter"""


@pytest.mark.parametrize("line", SUMS.split("\n"))
def test_parts_of_an_amount_are_added_up(line: str) -> None:
    unit, total, texts = line.split(" | ")
    assert [(text, read(text, unit)) for text in texts.split("|") if read(text, unit) != (total,)] == []


@pytest.mark.parametrize(("text", "unit"), [("1 m 5", "cm"), ("3 km 4", "km")])
def test_digits_that_may_be_two_parts_of_a_unit_are_unreadable(text: str, unit: str) -> None:
    assert read(text, unit) == ()


WORDS = """EUR | 5000 | fünftausend Euro|cinq mille euros|cinco mil euros
EUR | 5000 | cinquemila euro|vijfduizend euro|pięć tysięcy euro
EUR | 5000 | пять тысяч евро|beş bin euro|خمسة آلاف يورو|五千欧元|五千ユーロ|fuenftausend Euro
EUR | 350 | dreihundertfünfzig Euro|trois cent cinquante euros|trescientos cincuenta euros|trecentocinquanta euro
EUR | 350 | trezentos e cinquenta euros|driehonderdvijftig euro|trzysta pięćdziesiąt euro|триста пятьдесят евро
EUR | 350 | üç yüz elli euro|ثلاثمائة وخمسون يورو|三百五十ユーロ
EUR | 2000000 | zwei Millionen Euro|deux millions d'euros|2 millions d'euros|dos millones de euros|due milioni di euro
EUR | 2000000 | dois milhões de euros|twee miljoen euro|dwa miliony euro
EUR | 2000000 | два миллиона евро|iki milyon euro|مليونان يورو|两百万欧元
EUR | 97 | siebenundneunzig Euro|quatre-vingt-dix-sept euros
EUR | 97 | noventa y siete euros|novantasette euro|zevenennegentig euro
people | 45000 | Das Stadion hat eine Kapazität von fünfundvierzigtausend Zuschauern.|quarante-cinq mille spectateurs
people | 4221 | quatre mille deux cent vingt et un|viertausendzweihunderteinundzwanzig|quattromiladuecentoventuno
people | 100000 | hunderttausend|cent mille|cien mil|centomila|cem mil
people | 100000 | honderdduizend|sto tysięcy|сто тысяч|yüz bin|十万人
people | 36 | 3 Dutzend|3 dozen|three dozen|trois douzaines|sechsunddreißig|treinta y seis|otuz altı
people | 2 | zwei|两个孩子|二人|deux enfants|zwei Kinder
people | 2500000 | deux millions et demi|two and a half million|2,5 millions"""


@pytest.mark.parametrize("line", WORDS.split("\n"))
def test_number_words_of_any_size_are_read(line: str) -> None:
    unit, number, texts = line.split(" | ")
    assert [(text, read(text, unit)) for text in texts.split("|") if read(text, unit) != (number,)] == []


@pytest.mark.parametrize(
    "text",
    "mehrere tausend Euro|einige hunderttausend Euro|plusieurs milliers d'euros|несколько тысяч евро|birkaç bin euro"
    "|Tausende von Euro|Ich bin nicht sicher|It is on a small island|not one of the cents".split("|"),
)
def test_words_that_are_no_number_are_none(text: str) -> None:
    assert read(text, "EUR") == ()


@pytest.mark.parametrize(
    ("unit", "own", "other"),
    [
        ("CAD", "3 dollars canadiens|3 dólares canadienses|3 millions de dollars canadiens", ""),
        ("USD", "3 dólares estadounidenses|3 dollars américains", "3 dollars canadiens|3 dollars australiens"),
        ("MXN", "3 pesos mexicanos", "3 pesos chilenos"),
        ("CHF", "3 Schweizer Franken|3 franchi svizzeri|3 franków szwajcarskich", "3 belgische Franken"),
        ("SEK", "3 coronas suecas|3 Kronen", "3 couronnes norvégiennes|3 dänische Kronen"),
        ("GBP", "3 livres sterling|3 libras esterlinas|3 pounds|3 Pfund", "3 ägyptische Pfund"),
        ("BRL", "3 reais", "3 rupees"),
    ],
)
def test_a_currency_of_two_words_is_none_of_its_second_word_s(unit: str, own: str, other: str) -> None:
    relation = small_relation(kind="number", unit=unit)
    assert {text for text in own.split("|") if not read(text, unit)} == set()
    assert {text for text in other.split("|") if text and read(text, unit)} == set()
    assert {text for text in own.split("|")[:1] if NUMBER.meaning(text, relation) != 3} == set()
    assert {text for text in other.split("|") if text and NUMBER.meaning(text, relation)} == set()


@pytest.mark.parametrize(
    ("noun", "texts"),
    {
        "Kinder": "7 Kinder",
        "Staffeln": "7 Staffeln",
        "albums": "7 Alben",
        "Alben": "7 Alben|sieben Alben",
        "Kronen": "7 Kronen",
    }.items(),
)
def test_things_are_counted_in_other_languages(noun: str, texts: str) -> None:
    assert {read(text, noun) for text in texts.split("|")} == {("7",)}


GERMAN = {
    "EUR": {
        "12.500 M|12.500 RM|12.500 Mk.|12.500 sFr.|500 fl.|300.000 SFr|2 Mio. RM|12.500 M (1904)|RM 500": (),
        "12 M€|12M EUR|€12M|12 Mio. €": ("12000000",),
        "1 Milliarde Euro|1 Mrd. Euro|eine Milliarde Euro": ("1000000000",),
        "1,5 Mill. Euro|1,5 Mio. Euro": ("1500000",),
        "EUR 5 - EUR 10|EUR 5 bis EUR 10|€5 - €10": ("7.5",),
    },
    "t": {
        "3 dz|3 Doppelzentner": ("0.3",),
        "eine halbe Tonne|une demi-tonne|media tonelada|mezza tonnellata|pół tony|полтонны|yarım ton": ("0.5",),
        "ein halber Zentner": ("0.025",),
        "un quart de tonne|четверть тонны|een kwart ton": ("0.25",),
        "anderthalb Tonnen|półtorej tony|полторы тонны|bir buçuk ton": ("1.5",),
        "3 Schiffspfund|3 пуда|3 Klafter": (),
    },
    "Register": {
        "ein halbes Dutzend|une demi-douzaine|media docena|mezza dozzina|pół tuzina|полдюжины|yarım düzine": ("6",),
        "ein Dutzend|дюжина|tuzin": ("12",),
        "Sie hat 2 Manuale.|Die Orgel hat 2.400 Pfeifen.": (),
        "72 Register|72 Orgelregister|72 Stück|Die Orgel hat 72 Register auf 4 Manualen.": ("72",),
    },
    "Kinder": {"zwei Söhne und drei Töchter|2 sons and 3 daughters|deux fils et trois filles": ("5",)},
}


@pytest.mark.parametrize("unit", GERMAN)
def test_an_amount_of_another_thing_or_currency_is_none_and_parts_and_scales_are_read(unit: str) -> None:
    shape = Shape(separators=("\n",), conjunction=False, minimum=0, integer=unit in ("Register", "Kinder"))
    relation = small_relation(kind="number", unit=unit, language="de", shape=shape)
    for texts, expected in GERMAN[unit].items():
        for text in texts.split("|"):
            assert (text, parse(text, relation, "The Scream").objects) == (text, expected)


def test_a_cell_of_a_table_may_have_a_scale_and_says_what_is_wrong_with_its_unit() -> None:
    relation = small_relation(kind="number", unit="EUR", language="de")
    assert NUMBER.meaning("3 Mio. Euro", relation) == NUMBER.meaning("EUR 3 Mio.", relation) == 3_000_000
    assert NUMBER.meaning("3.000 Mark", relation) is None
    assert "'3.000 Mark' is not in EUR" in NUMBER.unread("3.000 Mark", relation)
    assert "is no number" in NUMBER.unread("viel", relation)


@pytest.mark.parametrize(("integer", "expected"), [(True, 0.0), (False, 0.05)])
def test_whole_numbers_are_exact_unless_a_tolerance_is_given(integer: bool, expected: float) -> None:
    base = small_relation(kind="number", tolerance=math.nan, shape=Shape(integer=integer))
    assert base.tolerance == expected
    assert small_relation(kind="number", tolerance=0.1, shape=Shape(integer=integer)).tolerance == 0.1


def test_the_name_of_a_subject_is_no_part_of_a_word() -> None:
    relation = small_relation(kind="number", unit="enfants", language="fr", shape=Shape(integer=True))
    assert parse("Il a deux enfants.", relation, "x").objects == ("2",)
    assert parse("One Piece has 61 enfants.", relation, "One Piece").objects == ("61",)
