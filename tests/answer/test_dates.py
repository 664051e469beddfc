"""Dates in answers: the forms of many languages, what is ambiguous, what no calendar has, and dates in prose."""

import datetime
from dataclasses import replace

import pytest
from babel import Locale
from babel.dates import format_date
from growth import in_proportion
from hypothesis import given
from hypothesis import strategies as st
from small import small_relation

from lmkbc import Relation, Shape
from lmkbc.answer.clean import sifted
from lmkbc.answer.parse import parse
from lmkbc.kinds.dates import LANGUAGES, PartialDate, Precision, find_dates, read_date
from lmkbc.testing import State

READ = """
1985 | 1985
Sept 1899 | 1899-09
Sept 3, 1899 | 1899-09-03
mid-19th century | 19th century
1. Jänner 1990 | 1990-01-01
3. Feber 2022 | 2022-02-03
Mrz 2019 | 2019-03
06.2023 | 2023-06
KW 12/2020 | 2020
29 de setiembre de 1923 | 1923-09-29
29 Ekim 1923 | 1923-10-29
10 Kasım 1938 | 1938-11-10
MÖ 44 | 44 BC
29 أكتوبر 1923 | 1923-10-29
29 تشرين الأول 1923 | 1923-10-29
29 أكتوبر/تشرين الأول 1923 | 1923-10-29
29 באוקטובר 1923 | 1923-10-29
29 अक्टूबर 1923 | 1923-10-29
1923年10月29日 | 1923-10-29
1923年10月 | 1923-10
960年 | 960
公元前221年 | 221 BC
19世纪 | 19th century
20世紀80年代 | 1980s
1980年代 | 1980s
1923년 10월 29일 | 1923-10-29
1980년대 | 1980s
around the year 1875 | c. 1875
in 1985 | 1985
476 | 476
AD 79 | 79 AD
79 CE | 79 AD
c. 1985 | c. 1985
c.1985 | c. 1985
circa 500 BCE | c. 500 BC
~1985 | c. 1985
um 1985 | c. 1985
1980s | 1980s
the 1980s | 1980s
1980's | 1980s
late 1980s | 1980s
40s BC | 40s BC
80s AD | 80s AD
the mid-80s | 1980s
late '90s | 1990s
die 60er | 1960s
80er Jahre | 1980s
années 80 | 1980s
los años 80 | 1980s
anni '80 | 1980s
jaren 80 | 1980s
lata 80. | 1980s
lata 80. XX wieku | 1980s
80-е годы | 1980s
1980er Jahre | 1980s
années 1980 | 1980s
1900s | 20th century
1900s (decade) | 1900s (decade)
October 1985 | 1985-10
10/1985 | 1985-10
1985-10 | 1985-10
12 October 1985 | 1985-10-12
12th of October, 1985 | 1985-10-12
October 12, 1985 | 1985-10-12
Oct. 12, 1985 | 1985-10-12
1985-10-12 | 1985-10-12
1985-10-12T10:30:00Z | 1985-10-12
1985/10/12 | 1985-10-12
+1985-10-12T00:00:00Z | 1985-10-12
+1985-10-00T00:00:00Z | 1985-10
+1985-00-00T00:00:00Z | 1985
+1985-10-12T00:00:00Z/9 | 1985
+1980-00-00T00:00:00Z/8 | 1980s
+1801-00-00T00:00:00Z/7 | 19th century
-0044-03-15T00:00:00Z/11 | 0044-03-15 BC
-0043 | 44 BC
0000 | 1 BC
44 BC | 44 BC
44 B.C. | 44 BC
AD 9999 | 9999
999999 BC | 999999 BC
44 v. Chr. | 44 BC
44 v. Chr | 44 BC
44 vor Christus | 44 BC
vor Christus 44 | 44 BC
vor Christi Geburt 44 | 44 BC
1200 vor Christus | 1200 BC
5. Jahrhundert vor Christus | 5th century BC
44 nach Christus | 44 AD
44 avant J.-C. | 44 BC
44 av. J.-C | 44 BC
44 před Kristem | 44 BC
1200 до нашей эры | 1200 BC
44 fvt. | 44 BC
Kr. e. 1200 | 1200 BC
MÖ 1200 | 1200 BC
44 av. J.-C. | 44 BC
44 a. C. | 44 BC
44 f.Kr. | 44 BC
44 e.Kr. | 44 AD
44 eKr. | 44 BC
12000 BC | 12000 BC
March 15, 44 BC | 0044-03-15 BC
March 44 BC | 0044-03 BC
5th century BC | 5th century BC
21st century | 21st century
19. Jahrhundert | 19th century
XIXe siècle | 19th century
siglo XIX | 19th century
XIX век | 19th century
12. Okt. 1985 | 1985-10-12
Okt. 1985 | 1985-10
1er mai 1985 | 1985-05-01
1º de mayo de 1985 | 1985-05-01
21 ott 1985 | 1985-10-21
1985 m. spalio 12 d. | 1985-10-12
12 октября 1985 г. | 1985-10-12
29 February 1500 | 1500-02-29
29 February 2000 | 2000-02-29
3.4.1985 | 1985-04-03
13/04/1985 | 1985-04-13
04/13/1985 | 1985-04-13
04/04/1985 | 1985-04-04
03/04/1985 | 1985
03-04-1985 | 1985
12 listopada 1985 | 1985
"""
NONE = """
hello | 1 May | 79 | 85 | 12 | 0 | 0000 BC | 10000 | 03/04/85 | 31/04/1985 | 13/13/1985 | 1985-13-01 | 1985-02-30
29 February 1900 | 1985.5 | 1,985 | 1985 % | Q1985 | version 1985 | 1985-1990 | 1985–1990
3rd millennium BC | 32 May 1985
"""
PROSE = [
    ("conceived in the late 1980s and first released on February 20, 1991.", ["1980s", "1991-02-20"]),
    ("It has 1,985 seats, 300 staff and 5 gates, and opened in 1985 (May 12).", ["1985"]),
    ("open 1985-1990, closed 1991–1995", ["1985", "1990", "1991", "1995"]),
    ("Washington, D.C. 1985; i.e. 1986", ["1985", "1986"]),
    ("The album came out 1985. It was set 1986 in Spain.", ["1985", "1986"]),
    ("built around 500 BC, or in the 5th century BC", ["c. 500 BC", "5th century BC"]),
    ("Version 3.10 of 2021, 3000 times", ["2021"]),
    ("on 12 October 1985 at 10:30", ["1985-10-12"]),
    ("nobody knows", []),
]


INTERVALS = """1905-1907|1905–1907|1905 - 1907|1905/1907|1905–07|between 1905 and 1907|from 1905 to 1907
zwischen 1905 und 1907|von 1905 bis 1907|entre 1905 et 1907|de 1905 à 1907|entre 1905 y 1907|tra il 1905 e il 1907
tussen 1905 en 1907|1905年至1907年|между 1905 и 1907|między 1905 a 1907|1905 ile 1907 arasında|mellan 1905 och 1907"""


def rows(table: str) -> list[list[str]]:
    return [line.split(" | ") for line in table.strip().splitlines()]


@pytest.mark.parametrize(("text", "read"), [row for row in rows(READ) if row[0] != "0000"])
def test_a_date_is_read_as_precise_as_it_is_stated(text: str, read: str) -> None:
    assert str(read_date(text)) == read
    assert [str(date) for date in find_dates(f"({text})")] == [read] or text in ("476", "-0043", "960年")


@pytest.mark.parametrize("text", [text for row in rows(NONE) for text in row])
def test_what_is_no_date_or_not_one_gives_none(text: str) -> None:
    assert read_date(text) is None


@pytest.mark.parametrize(("text", "found"), PROSE)
def test_dates_in_prose(text: str, found: list[str]) -> None:
    assert [str(date) for date in find_dates(text)] == found


@pytest.mark.parametrize("text", INTERVALS.replace("\n", "|").split("|"))
def test_an_interval_is_its_two_ends_however_it_is_written(text: str) -> None:
    assert read_date(text) is None
    assert [str(date) for date in find_dates(text)] == ["1905", "1907"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("1905-07", ["1905-07"]),
        ("1914-18", ["1914", "1918"]),
        ("1905-05-12/1907-06-03", ["1905-05-12", "1907-06-03"]),
        ("1980s-1990s", ["1980s", "1990s"]),
        ("c. 1905-1907", ["c. 1905", "1907"]),
        ("no. 1905-1907-12", ["1905"]),
    ],
)
def test_a_month_or_a_code_is_no_interval(text: str, found: list[str]) -> None:
    assert [str(date) for date in find_dates(text)] == found


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_language_s_own_forms_are_read(language: str) -> None:
    days = [datetime.date(1985, month, 21) for month in range(1, 13)]
    wrong = {text for day in days if str(read_date(text := format_date(day, "long", language))) != str(day)}
    assert all("listopad" in text for text in wrong)  # November in Polish, October in Croatian
    eras = Locale(language).eras
    read = [str(read_date(f"44 {eras[width][era]}")) for width in ("wide", "abbreviated") for era in (0, 1)]
    assert read == ["44 BC", "44 AD"] * 2 or (language == "hu" and read[:2] == ["44 BC", "44 AD"])


DATES = st.builds(
    lambda day, precision, bce, circa: replace(
        PartialDate(day.year, day.month, day.day, Precision.DAY, bce).at(precision), circa=circa
    ),
    st.dates().filter(lambda day: day.year >= 10 and (day.month, day.day) != (2, 29)),
    st.sampled_from(Precision),
    st.booleans(),
    st.booleans(),
)


@given(DATES)
def test_a_written_date_is_read_as_itself(date: PartialDate) -> None:
    assert read_date(str(date)) == date
    assert [*find_dates(f"It was {date}.")] in ([date], [] if date.precision == Precision.YEAR else [date])


@given(st.text() | st.text(st.sampled_from("0123456789 -/.,BCADcsTZ+mayth")))
def test_any_text_is_read(text: str) -> None:
    whole, found = read_date(text), [*find_dates(text)]
    assert all(read_date(str(date)) == date for date in [*found, *([whole] if whole else [])])


@pytest.mark.parametrize("part", ["12 October ", "1985-", "a.C. ", "10 ", "c. ", ". , ", "in the ", "XIX ", "d'", "1"])
def test_time_grows_with_the_length(part: str) -> None:
    assert in_proportion(lambda text: [*find_dates(text), read_date(text + "x")], part)


@pytest.mark.parametrize(
    "wrong", [{"year": 0}, {"year": 10000}, {"year": 1985, "month": 13}, {"year": 1985, "month": 2, "day": 29}]
)
def test_a_date_that_no_calendar_has_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=r"out of range|no year 0"):
        PartialDate(**wrong)


def relation(kind: str, **shape: object) -> Relation:
    return small_relation(
        "inception",
        kind=kind,
        definition="When it was founded.",
        clozes=("{subject} was founded in {mask}.",),
        question="When was {subject} founded?",
        triple="was founded in",
        statement="{subject} was founded in {object}.",
        shape=Shape(**shape),  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(
    ("text", "objects"),
    [
        ("1985.", ["1985"]),
        ("c. 1985", ["c. 1985"]),
        ("October 12, 1985", ["1985-10-12"]),
        ('["October 12, 1985"]', ["1985-10-12"]),
        ("[October 12, 1985]", ["1985-10-12"]),
        ('{"date": "12 October 1985", "confidence": 1986}', ["1985-10-12"]),
        ('{"year": 476}', ["476"]),
        ("Answer: 5th century BC", ["5th century BC"]),
        ("**1985**", ["1985"]),
        ("It was founded in 1985 in Berlin.", ["1985"]),
        ("It employs people since 1990.\nIt was founded on 12. Oktober 1985.", ["1985-10-12"]),
        ("| Event | Date |\n|---|---|\n| Founded | 12 May 1985 |", ["1985-05-12"]),
        ("12 October 1985 [1]", ["1985-10-12"]),
    ],
)
def test_answers_of_dates(text: str, objects: list[str]) -> None:
    asked = relation("date")
    assert [*parse(text, asked, "X").objects] == objects
    assert sifted(objects, asked, "X") == (tuple(objects), ())


def test_a_date_outside_of_the_shape_and_no_date_are_dropped() -> None:
    asked = relation("date", minimum=-43, maximum=2026)
    kept, dropped = sifted(["44 BC", "45 BC", "2027", "soon", "1985"], asked, "X")
    assert kept == ("44 BC", "1985")
    assert [one.rule for one in dropped] == ["minimum", "maximum", "no date"]
    assert [parse(text, asked, "X").state for text in ("unknown", "[]", "soon")] == [
        State.ABSTAINED,
        State.ABSTAINED,
        State.UNPARSED,
    ]


BOUNDS = """before 1900|after 1900|prior to 1900|before the year 1900|no later than 1900|< 1900|pre-1900
shortly before 1900|vor 1900|nach 1900|vor dem Jahr 1900|spätestens 1900|vor dem 12. Mai 1900
vor dem 19. Jahrhundert|1900 oder früher|avant 1900|après 1900|antes de 1900|después de 1900
prima del 1900|dopo il 1900|depois de 1900|voor 1900|na 1900|przed 1900 rokiem|po 1900 roku
до 1900 года|после 1900 года|1900'den önce|قبل 1900|before 44 BC|1900 or later"""


@pytest.mark.parametrize("text", BOUNDS.replace("\n", "|").split("|"))
def test_a_bound_is_no_date_and_its_answer_cannot_be_read(text: str) -> None:
    assert parse(text, relation("date"), "Acme").state is State.UNPARSED
    assert parse(f"{text}, probably in 1885", relation("date"), "Acme").objects == ("1885",)


@pytest.mark.parametrize("text", ["since 1900", "seit 1900", "in 1900", "1900", "the wars before it ended in 1900"])
def test_a_date_that_something_lasts_from_is_no_bound(text: str) -> None:
    assert parse(text, relation("date"), "Acme").objects == ("1900",)


SPANS = """zwischen 1889 und 1891|1889–1891|1889-1891|1889-91|1889 bis 1891|between 1889 and 1891|from 1889 to 1891
entre 1889 et 1891|entre 1889 y 1891|tra il 1889 e il 1891|tussen 1889 en 1891|między 1889 a 1891|um 1890
1890 oder 1891|1890/91|1890/1891|1890 or 1891|1890 ou 1891|gegen 1890|Es entstand 1890/91."""


@pytest.mark.parametrize("text", SPANS.replace("\n", "|").split("|"))
def test_two_near_years_for_one_date_are_the_year_between_them(text: str) -> None:
    assert parse(text, replace(relation("date"), functional=True), "Acme").objects == ("c. 1890",)


def test_a_long_span_and_dates_of_a_relation_with_several_stay_two() -> None:
    once, often = replace(relation("date"), functional=True), relation("date")
    for text in ("1756–1791", "zwischen 1756 und 1791", "1939 to 1945"):
        assert len(parse(text, once, "Acme").objects) == 2
    assert parse("1889–1891", often, "Acme").objects == ("1889", "1891")
    assert parse("2010-11", once, "Acme").objects == ("2010-11",)


ENDS = """When was {subject} completed?|When did {subject} die?|Wann wurde {subject} fertiggestellt?
Quand {subject} a-t-il été achevé ?|¿Cuándo terminó {subject}?|Quando è morto {subject}?|Quando {subject} foi concluído?
Wanneer werd {subject} voltooid?|Kiedy ukończono {subject}?|Когда было завершено {subject}?
{subject}はいつ完成しましたか？"""


@pytest.mark.parametrize("question", ENDS.replace("\n", "|").split("|"))
def test_of_a_long_span_a_relation_of_ends_means_the_end(question: str) -> None:
    ended = replace(relation("date"), functional=True, question=question)
    assert parse("1907–1911", ended, "Acme").objects == ("1911",)
    assert parse("von 1907 bis 11", ended, "Acme").objects[0] == "1907"
    assert parse("1889–91", ended, "Acme").objects == ("c. 1890",)
    assert parse("Begonnen 1907, eröffnet 1911", ended, "Acme").objects == ("1911",)
    assert parse("Begonnen 1907", ended, "Acme").objects == ("1907",)


BEGUN = """1911 (Baubeginn 1907)|Der Bau begann 1907 und wurde 1911 abgeschlossen.|1907 begonnen, 1911 vollendet
1911 (construction began in 1907)|Begun in 1907 and completed in 1911|1907 (start), 1911 (end)
1911 (début des travaux en 1907)|commencé en 1907, achevé en 1911|1911 (inicio de las obras en 1907)
1911 (inizio dei lavori nel 1907)
1911 (início das obras em 1907)|1911 (begonnen in 1907)|1907 begonnen en 1911 voltooid
1911 (rozpoczęcie budowy w 1907)|1911 (начато в 1907)
Der Bau wurde 1907 begonnen und 1911 beendet.|1911; Baubeginn war am 3. Mai 1907
Nach dem Baubeginn 1907 war sie 1911 fertig."""


@pytest.mark.parametrize("text", BEGUN.replace("\n", "|").split("|"))
def test_a_date_of_a_beginning_is_no_end_beside_another_date(text: str) -> None:
    ended = replace(relation("date"), functional=True, question="Wann wurde {subject} fertiggestellt?")
    assert parse(text, ended, "Acme").objects == ("1911",)


@pytest.mark.parametrize(
    "text", ["1911 (Baubeginn 1907)", "1911; Baubeginn war 1907", "Baubeginn 1907, vollendet 1911"]
)
def test_a_date_of_a_beginning_answers_a_relation_of_beginnings(text: str) -> None:
    begun = replace(relation("date"), functional=True, language="de", question="Wann war Baubeginn von {subject}?")
    assert parse(text, begun, "Acme").objects == ("1907",)


@pytest.mark.parametrize(
    "text",
    [
        "Die Brauerei wurde 1783 gegründet und 1990 übernommen.",
        "Gegründet 1783 (erste Erwähnung 1502)",
        "1783, als Klosterbrauerei; seit 1920 im Besitz der Familie",
        "1502 erstmals erwähnt, 1783 gegründet",
    ],
)
def test_a_date_of_something_else_is_no_answer_of_one_date(text: str) -> None:
    founded = replace(
        relation("date"),
        functional=True,
        language="de",
        question="Wann wurde {subject} gegründet?",
        statement="{subject} wurde {object} gegründet.",
        triple="wurde gegründet",
        clozes=("{subject} wurde {mask} gegründet.",),
    )
    assert parse(text, founded, "Acme").objects == ("1783",)
