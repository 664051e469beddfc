"""Units of measure: how texts spell them, their items in Wikidata, and conversion by pint.

Factors, offsets and dimensions are pint's. pint is loaded when the first number in another unit than its relation's is
converted, so runs without such numbers never load it. Names that are not listed here are CLDR's, in all languages.
Money is not converted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from decimal import Context, Decimal, getcontext
from functools import cache, lru_cache
from typing import TYPE_CHECKING, NamedTuple

from babel.core import get_global

from lmkbc.names import folded_key
from lmkbc.words import WORDS, locales

if TYPE_CHECKING:
    from pint import UnitRegistry

LETTER = r"[^\W\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
"""Letter, digit or underscore of a script that writes words with blanks between them."""
FEWEST_DIGITS, TEMPERATURE_PLACES = 7, 6
"""Significant digits of a converted number, if it was written with fewer; most decimal places of a temperature."""
OF_LENGTH = {
    "kilometer": "km kms kilometer kilometre kilómetro kilomètre quilómetro quilômetro chilometri "
    "км 公里 千米 キロメートル",
    "meter": "m mtr meter metre metro mètre metri м 米 平米 メートル",
    "hectometer": "hm hectometer hectometre hektometer hectómetro hectómetros hectomètre hectômetro ettometro "
    "ettometri гектометр",
    "decimeter": "dm decimeter decimetre",
    "centimeter": "cm cms centimeter centimetre "
    "zentimeter centímetro centímetros centimetro centimetri centymetrów сантиметр сантиметров см 厘米 "
    "センチメートル",
    "millimeter": "mm millimeter millimetre "
    "milímetro milímetros millimetro millimetri milimetrów миллиметр миллиметров мм 毫米 ミリメートル",
    "micrometer": "µm μm um micrometer micrometre micron",
    "nanometer": "nm nanometer nanometre",
    "mile": "mi mile statute_mile",
    "yard": "yd yds yard",
    "foot": "ft foot feet",
    "inch": "in inch inches",
}
"""Unit of length of pint -> spellings; _ stands for a blank or hyphen. Squares and cubes of them are read, too."""
OTHERS = {
    "nautical_mile": "nmi nautical_mile",
    "light_year": "ly light_year lightyear",
    "astronomical_unit": "au astronomical_unit",
    "parsec": "pc parsec",
    "hectare": "ha hectare hektar hectárea "
    "hectáreas ettaro ettari hektarów гектар гектара гектаров 公顷 公頃 ヘクタール هكتار",
    "international_acre": "ac acre",
    "liter": "l L liter litre litro litros litri litrów литр литра литров 升 リットル لتر",
    "milliliter": "ml mL milliliter millilitre",
    "hectoliter": "hl hL hectoliter hectolitre hektoliter hectolitro hectolitros ettolitro ettolitri hektolitrów "
    "гектолитров",
    "megaliter": "ML megaliter megalitre",
    "gigaliter": "GL gigaliter gigalitre",
    "acre_foot": "acre_ft acre_foot acre_feet ac_ft",
    "oil_bbl": "bbl bbls barrel",
    "millimeter ** 3": "mm³ mm^3 mm3",
    "hectometer ** 3": "MCM Mm³ Mm^3 Mm3",
    "gallon": "gal gallon US_gallon",
    "kilogram": "kg kgs kilo kilogram kilogramme "
    "kilogramm kilos kilogramo kilogramos kilogrammo kilogrammi chilogrammo chilogrammi quilograma "
    "quilogramas quilo quilos kilogramów килограмм килограмма килограммов кг 公斤 千克 キログラム كيلوغرام "
    "كيلوغراما",
    "gram": "g gram gramme "
    "gramm gramo gramos grammo grammi grama gramas gramów грамм грамма граммов 克 グラム غرام غراما",
    "milligram": "mg milligram "
    "milligramm miligramo miligramos milligrammo milligrammi miligrama miligramas miligramów миллиграмм "
    "миллиграммов мг 毫克 ミリグラム",
    "metric_ton": "t tonne metric_ton "
    "tonnen tonelada toneladas tonnellata tonnellate tona tony тонна тонны тонн 吨 噸 トン طن",
    "megametric_ton": "Mt megatonne megaton",
    "microgram": "µg μg microgram",
    "ton": "ton tons short_ton",
    "long_ton": "long_ton",
    "pound": "lb lbs pound",
    "ounce": "oz ounce",
    "pfund": "pfund",
    "zentner": "zentner",
    "quintal": "dz doppelzentner quintaux quintale quintali kwintal kwintale kwintala kwintali центнер центнера "
    "центнеров",
    "dekagram": "dag deka dekagramm decagram decagramme",
    "stone": "stone",
    "dalton": "u Da dalton amu",
    "degree_Celsius": "°C °_C C degC deg_C degrees_C degree_Celsius degrees_Celsius celsius "
    "degrees_centigrade centigrade",
    "degree_Fahrenheit": "°F °_F F degF deg_F degrees_F degree_Fahrenheit degrees_Fahrenheit fahrenheit",
    "kelvin": "K °K kelvin degrees_Kelvin",
    "kilometer / hour": "km/h kmh kph kmph km/hr km_per_hour kilometer_per_hour kilometers_per_hour kilometre_per_hour "
    "kilometres_per_hour",
    "mile / hour": "mph mi/h miles/h mile_per_hour miles_per_hour",
    "kilometer / second": "km/s kilometers_per_second kilometres_per_second",
    "mile / second": "miles_per_second",
    "meter / second": "m/s meter_per_second meters_per_second metre_per_second metres_per_second",
    "knot": "kn kt kts knot",
    "millisecond": "ms millisecond",
    "second": "s sec secs second 秒",
    "minute": "m min mins minute 分钟 分鐘 分",
    "hour": "h hr hrs hour ora ore uur uren 小时 小時 時間",
    "day": "d day days",
    "week": "wk week",
    "month": "mo month",
    "year": "a yr yrs year ans",
    "joule": "J joule",
    "kilojoule": "kJ kilojoule",
    "megajoule": "MJ megajoule",
    "millijoule": "mJ millijoule",
    "gigajoule": "GJ gigajoule",
    "terajoule": "TJ terajoule",
    "calorie": "cal calorie",
    "kilocalorie": "kcal kilocalorie",
    "electron_volt": "eV electronvolt electron_volt",
    "kilowatt_hour": "kWh kilowatt_hour",
    "watt_hour": "Wh watt_hour",
    "megawatt_hour": "MWh megawatt_hour",
    "gigawatt_hour": "GWh gigawatt_hour",
    "terawatt_hour": "TWh terawatt_hour",
    "watt": "W watt",
    "kilowatt": "kW kilowatt",
    "megawatt": "MW megawatt",
    "gigawatt": "GW gigawatt",
    "terawatt": "TW terawatt",
    "milliwatt": "mW milliwatt",
    "horsepower": "hp horsepower",
    "volt": "V volt",
    "pascal": "Pa pascal",
    "hectopascal": "hPa hectopascal",
    "kilopascal": "kPa kilopascal",
    "bar": "bar",
    "atmosphere": "atm",
    "psi": "psi",
    "hertz": "Hz hertz",
    "kilohertz": "kHz kilohertz",
    "megahertz": "MHz megahertz",
    "gigahertz": "GHz gigahertz",
    "gram / centimeter ** 3": "g/cm3 g/cm^3 g/cc grams_per_cubic_centimeter grams_per_cubic_centimetre",
    "kilogram / meter ** 3": "kg/m3 kg/m^3 kilograms_per_cubic_meter kilograms_per_cubic_metre",
    "percent": "% percent per_cent pct",
}
"""Other unit of pint -> spellings."""
MONEY = {
    "USD": "$ US$ USD dollar US_dollar U.S._dollar buck",
    "EUR": "€ EUR euro",
    "GBP": "£ GBP pound_sterling pounds_sterling British_pound pfund quid",
    "JPY": "¥ JPY yen 円",
    "CNY": "CNY RMB yuan renminbi",
    "INR": "₹ INR Rs rupee Indian_rupee",
    "CHF": "CHF sFr SFr Fr Swiss_franc",
    "CAD": "C$ CA$ CAD Canadian_dollar",
    "AUD": "A$ AU$ AUD Australian_dollar",
    "DEM": "DM DEM D_Mark",
    "SEK": "kr SEK",
    "NOK": "kr NOK",
    "DKK": "kr DKK",
    "CZK": "Kč CZK",
    "PLN": "zł PLN",
    "RUB": "₽ RUB руб",
    "TRY": "₺ TRY TL",
    "ATS": "öS ATS",
    "FRF": "FF FRF",
    "BRL": "R$ BRL reais",
}
"""Currency -> spellings in any case; its names, and the codes of other currencies, are CLDR's."""
_CODES = frozenset(get_global("all_currencies")) - MONEY.keys()
MINOR = {
    "meter": "centimeter",
    "kilometer": "meter",
    "foot": "inch",
    "kilogram": "gram",
    "metric_ton": "kilogram",
    "pound": "ounce",
    "hour": "minute",
    "minute": "second",
}
"""Unit -> unit of a number behind it that has none, as in "1 m 80" and "2 h 30"."""
UNSURE = frozenset(
    "dz in min bar au pc pa gal mo ms ac sec ly second minute cal m k a u ans ora ore hm mt tw gl mcm 分 秒".split()
)
"""Spellings that mean a unit only where the relation's own unit has that dimension."""
ITEMS = {
    "Q11573": "meter",
    "Q828224": "kilometer",
    "Q174728": "centimeter",
    "Q174789": "millimeter",
    "Q253276": "mile",
    "Q3710": "foot",
    "Q218593": "inch",
    "Q482798": "yard",
    "Q93318": "nautical_mile",
    "Q531": "light_year",
    "Q1811": "astronomical_unit",
    "Q25343": "meter ** 2",
    "Q712226": "kilometer ** 2",
    "Q35852": "hectare",
    "Q81292": "international_acre",
    "Q232291": "mile ** 2",
    "Q857027": "foot ** 2",
    "Q25517": "meter ** 3",
    "Q4243638": "kilometer ** 3",
    "Q11582": "liter",
    "Q11570": "kilogram",
    "Q41803": "gram",
    "Q191118": "metric_ton",
    "Q100995": "pound",
    "Q48013": "ounce",
    "Q25267": "degree_Celsius",
    "Q42289": "degree_Fahrenheit",
    "Q11579": "kelvin",
    "Q180154": "kilometer / hour",
    "Q211256": "mile / hour",
    "Q182429": "meter / second",
    "Q128822": "knot",
    "Q11574": "second",
    "Q7727": "minute",
    "Q25235": "hour",
    "Q573": "day",
    "Q23387": "week",
    "Q5151": "month",
    "Q577": "year",
    "Q25269": "joule",
    "Q25236": "watt",
    "Q25250": "volt",
    "Q44395": "pascal",
    "Q39369": "hertz",
    "Q11229": "percent",
    "Q4917": "USD",
    "Q4916": "EUR",
    "Q25224": "GBP",
    "Q8146": "JPY",
    "Q39099": "CNY",
    "Q80524": "INR",
    "Q25344": "CHF",
    "Q1104069": "CAD",
    "Q259502": "AUD",
}
"""Wikidata's item of a unit -> unit of pint, or currency."""


class _Spelt(NamedTuple):
    """A unit in a text. units: the units that the spelling may mean. end: position behind it.

    sure: whether it means a unit even where another dimension is asked for: 2 yes, 1 only if one is, 0 no.
    """

    units: tuple[str, ...]
    end: int
    sure: int


def _spellings() -> dict[str, tuple[str, ...]]:
    """Return spelling -> units. Words have a plural; spellings of several letters are listed in lower case, too."""
    found: dict[str, tuple[str, ...]] = {}
    for unit, line in (OF_LENGTH | OTHERS | MONEY | {code: code for code in _CODES}).items():
        for word in (word.replace("_", " ") for word in line.split()):
            for form in (word, f"{word}s") if len(word) > 3 and "a" <= word[-1] <= "z" else (word,):
                found[form] = (*found.get(form, ()), unit)
                if len(form) > 1 and unit not in _CODES:
                    found.setdefault(form.lower(), found[form])
    return found


_UNITS = _spellings()


def _any(words: Iterator[str]) -> str:
    return "|".join(re.escape(word).replace(r"\ ", "[ -]") for word in sorted({*words}, key=len, reverse=True))


_POWER = (
    r" ?\^ ?[23](?!\d)| ?[²³]|[23](?!\d)|(?<!ft) 2(?=\s*(?:$|[.,;:()\n]))"
    r"|[ -]sq(?:uared?)?| cubed| cuadrad[oa]s?| quadrad[oa]s?| carr[ée]s?| quadrat[io]"
)
_UNIT = (
    r"(?P<before>(?:square|sq|cubic|cu|quadrat|q(?=[kcdm]?m)|cb(?=m)|c(?=cm)|кв|平方|立方)(?:\.\s?|[ -]?))?"
    r"(?!in\s+(?:\d|(?-i:[A-Z])|the\b|an?\b|its?\b|all\b|total\b))"
    rf"(?P<name>{_any(word for word in _UNITS if len(word) > 1 and word not in _CODES)}"
    rf"|(?-i:{_any(word for word in _UNITS if len(word) == 1 or word in _CODES)}))"
    rf"(?P<power>{_POWER})?"
    rf"(?:(?<={LETTER})(?!{LETTER})|(?<!{LETTER}))"
)
_GAP = r"(?!\s?-\s?(?:(?-i:[A-Z]{3})|[$€£¥])\s?\d)[-\s]{0,3}(?:d[ei] |d')?"
"""Between a number and its unit; the one in " - EUR 10" is that of the next number."""
_BEHIND, _LABEL = rf"{_GAP}{_UNIT}", rf"(?<!{LETTER}){_UNIT}\)?\s?[:=]\s?$"
_PRICE = (
    rf"(?<!{LETTER})(?P<before>)(?P<name>{_any(word for words in MONEY.values() for word in words.split())}"
    rf"|(?-i:{_any(iter(_CODES))}))"
    r"(?P<power>)\.?\s?$"
)


@lru_cache(maxsize=4)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


def unit_at(text: str, start: int) -> _Spelt | None:
    """Return the unit behind a number that ends at a position: "km^2", "sq mi", "degrees Celsius"."""
    return _spelt(match) if (match := _compiled(_BEHIND).match(text, start)) else None


def unit_before(text: str, end: int) -> _Spelt | None:
    """Return the unit before a number that starts at a position: a currency, or a label such as "sq mi: "."""
    window = text[max(0, end - 40) : end]
    match = _compiled(_LABEL if window.rstrip()[-1:] in (":", "=") else _PRICE).search(window)
    return _spelt(match) if match else None


def _spelt(match: re.Match[str]) -> _Spelt | None:
    name = " ".join(re.split(r"[ -]", match["name"]))
    units = _UNITS.get(name) or _UNITS.get(name.lower(), ())  # a dotless i matches "i" where case does not count
    before, power = (match["before"] or "").lower(), match["power"] or ""
    if before or power:
        units = _raised(units, before, power)
    is_letter = len(name) == 1 and name.isalpha()
    sure = 2 if before or power else 0 if name.lower() in UNSURE else 1 if is_letter or name in _CODES else 2
    return _Spelt(units, match.end(), sure) if units else None


_NO_NAMES = WORDS["no_unit"] | WORDS["little"] | WORDS["stop"]


@cache
def _named() -> dict[str, tuple[str, ...]]:
    """Return CLDR's names of units and currencies, and the words that two currencies share -> what they may mean.

    Other forms of a word have other ends. So a long one stands without its last letter, too, and several with the
    first letters of each.
    """
    found: dict[str, dict[str, None]] = {}
    for locale in locales():
        for code, name in locale.currencies.items():
            _add(found, code, {name, locale.currency_symbols.get(code, "")} - {code})
        for key, names in locale.unit_display_names.items():
            unit = key.partition("-")[2].replace("-per-", " / ").replace("-", "_")
            power = " ** 2" if "square_" in unit else " ** 3" if "cubic_" in unit else ""
            if WORDS["no_measure"].isdisjoint(key.split("-")):
                _add(found, f"{re.sub('square_|cubic_', '', unit)}{power}", names.values())
    return {form: (*filter(None, units),) for form, units in found.items() if len(units) > 1 or " " in form}


def _add(found: dict[str, dict[str, None]], unit: str, names: Iterable[str]) -> None:
    """Add the forms of a unit's names to what is found. Beside the unit, a name of one word alone gets ""."""
    for name in names:
        words = folded_key(re.sub(r"\(.*?\)", "", name)).split()
        forms = {" ".join(words), _starts(words)} if len(words) > 1 else set()
        for word in words if is_money(unit) or len(words) == 1 else ():
            if word not in _NO_NAMES:
                forms |= {word, word[:-1] if len(word) > 3 + word.isascii() else word}
        for form in forms:
            if len(form) + is_money(unit) > 2 + form.isascii():  # short ones are words of other languages
                found.setdefault(form, {}).update(dict.fromkeys((unit, "") if len(words) == 1 else (unit,)))


def _starts(words: list[str]) -> str:
    return " ".join(word[:4] for word in words)


_WORD = re.compile(r"[^\W\d_]+")
_NAME = re.compile(_GAP + r"([^\W\d_]{2,30}(?:[\s-][^\W\d_]{2,30}){0,2})")


def named_at(text: str, start: int) -> _Spelt | None:
    """Return the unit or currency that CLDR's names mean behind a number; of a currency, behind another word, too."""
    found = _NAME.match(text, start)
    spans = [word.span() for word in _WORD.finditer(text, *found.span(1))] if found else []
    words = [folded_key(text[begin:end]) for begin, end in spans]
    for first, last in ((0, 3), (0, 2), (0, 1), (1, 2)):
        if last <= len(words) and (units := _called(words[first:last])) and (not first or is_money(units[0])):
            end = spans[last - 1][1]
            power = _compiled(_POWER).match(text, end)
            return _Spelt(_raised(units, "", power[0]), power.end(), 2) if power else _Spelt(units, end, 2)
    return None


def unit_behind(text: str, start: int, own: str | None) -> _Spelt | None:
    """Return the unit behind a number for a relation. own: its unit; before money, "dollars canadiens" is no dollar."""
    if is_money(own):
        return named_at(text, start) or unit_at(text, start)
    return unit_at(text, start) or (named_at(text, start) if own else None)


def _called(words: list[str]) -> tuple[str, ...]:
    """Return what a name may mean; "reichsmark" ends in the name of a currency."""
    names, key = _named(), " ".join(words)
    if len(words) > 1:
        return names.get(key) or names.get(_starts(words), ())
    forms = (key, key[:-1], key[:-2])[: 3 if len(key) > 6 or not key.isascii() else 2]
    if units := (*dict.fromkeys(unit for form in forms for unit in names.get(form, ())),):
        return units
    tails = (unit for place in range(1, len(key) - 3) for unit in names.get(key[place:], ()))
    return next(((unit,) for unit in tails if is_money(unit)), ())


@cache
def _starts_of_units() -> frozenset[str]:
    units = (unit for locale in locales() for unit in locale.unit_display_names.values())
    names = " ".join(name for unit in units for name in unit.values())
    return frozenset(word[:4] for word in folded_key(names).split())


def is_like_unit(word: str) -> bool:
    """Return whether a word holds the first letters of a unit's name in any language, from CLDR: "Spielminuten"."""
    key = folded_key(word)
    return not _starts_of_units().isdisjoint(key[start : start + 4] for start in range(max(1, len(key) - 3)))


def is_money(unit: str | None) -> bool:
    """Return whether a unit is a currency, by its code."""
    return unit is not None and len(unit) == 3 and unit.isupper()


def _raised(units: tuple[str, ...], before: str, power: str) -> tuple[str, ...]:
    """Return the squares or cubes of units of length."""
    exponent = 3 if before[:1] in ("c", "立") or power.strip(" ^") in ("3", "³") or "cubed" in power else 2
    return tuple(f"{unit} ** {exponent}" for unit in units if unit in OF_LENGTH)


def unit_in(key: str) -> str:
    """Return the unit at the end of a key of JSON, as "sq mi" of "area_sq_mi"; "" if it has none."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", key).replace("_", " ").split()
    tails = (" ".join(words[start:]) for start in range(len(words)))
    return next((tail for tail in tails if (unit := unit_at(tail, 0)) and unit.end == len(tail)), "")


@lru_cache(maxsize=256)
def unit_of(spelling: str | None) -> str | None:
    """Return the unit of pint, or the currency, that a relation's unit spells; None for things that are counted."""
    text = (spelling or "").strip(" .")
    found = unit_at(text, 0) if text else None
    return found.units[0] if found and found.end == len(text) else None


def unit_of_item(qid: str | None) -> str | None:
    """Return the unit of pint, or the currency, of Wikidata's item; None if the item is not listed."""
    return ITEMS.get(qid or "")


def item_of_unit(unit: str | None) -> str | None:
    """Return Wikidata's item of a unit; None if the unit is not listed."""
    return next((qid for qid, listed in ITEMS.items() if listed == unit), None)


def converted(value: Decimal, unit: str, into: str) -> Decimal | None:
    """Return a number in another unit; None if the dimensions differ.

    It has as many significant digits as the given number, but at least 7.
    """
    if unit == into:
        return value
    if not value.is_finite() or (line := _conversion(unit, into)) is None:
        return None
    factor, offset = line
    digits = Context(prec=max(FEWEST_DIGITS, len(value.normalize().as_tuple().digits)))
    made = digits.plus(value * factor + offset)
    return round(made, TEMPERATURE_PLACES) if offset and made.adjusted() < getcontext().prec - 7 else made


@lru_cache(maxsize=4096)
def _conversion(unit: str, into: str) -> tuple[Decimal, Decimal] | None:
    """Return factor and offset of the conversion between two units; None if the dimensions differ."""
    if is_money(unit) or is_money(into):
        return None
    registry = _registry()
    with suppress(AttributeError):  # CLDR has units that pint lacks
        if registry.Unit(unit).is_compatible_with(registry.Unit(into)):
            zero, one = (registry.Quantity(Decimal(number), unit).to(into).magnitude for number in (0, 1))
            return one - zero, zero
    return None


@lru_cache(maxsize=1)
def _registry() -> UnitRegistry[Decimal]:
    from pint import UnitRegistry

    registry = UnitRegistry[Decimal](non_int_type=Decimal)
    registry.define("international_acre = mile ** 2 / 640")  # pint's own acre is of survey feet
    registry.define("pfund = 500 * gram")
    registry.define("zentner = 50 * kilogram")
    registry.define("quintal = 100 * kilogram")
    return registry
