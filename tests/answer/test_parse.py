"""Raw model text to objects: every style that models write in, every way of saying nothing, every way of breaking."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from growth import in_proportion
from hypothesis import example, given
from hypothesis import strategies as st

from lmkbc import EntityType, Relation, Shape
from lmkbc.answer.clean import sifted
from lmkbc.answer.parse import parse, verbatim
from lmkbc.kinds.numbers import read_numbers
from lmkbc.testing import State
from tests.small import small_relation

SUBJECT = "Some Subject"


def relation(kind: str = "entity", unit: str | None = None, **shape: object) -> Relation:
    return Relation(
        name="band-members",
        names=("BandHasMember",),
        property="P527",
        subject_type=EntityType("band", "Q215380"),
        object_type=EntityType("musician", "Q5"),
        kind=kind,  # type: ignore[arg-type]
        may_be_empty=True,
        definition="Members.",
        clozes=("{subject} has {mask}.",),
        question="Who are the members of {subject}?",
        triple="has the member",
        statement="{object} is in {subject}.",
        unit=unit,
        shape=Shape(**shape),  # type: ignore[arg-type]
    )


BAND = relation()
WHOLE = relation(separators=(";", "\n"), conjunction=False)
PARENT = replace(
    WHOLE, name="parent", names=("CompanyHasParent",), object_type=EntityType("parent organisation", "Q43229")
)
ELEMENT = relation(closed={"sodium": ("Na",), "chlorine": ("Cl",), "Bosnia and Herzegovina": ("Bosnia",)})
AREA = relation("number", "km2", separators=(";", "\n"), minimum=0.001)
SEATS = relation("number", "spectators", separators=(";", "\n"), integer=True)

ANSWERS: list[tuple[str, Relation, str, list[str]]] = [
    (
        "in other words",
        BAND,
        "The Some Subject is a multinational band of Ann Lee, Bo Day and others.",
        ["Ann Lee", "Bo Day"],
    ),
    ("python list", BAND, "['Ann Lee', 'Bo Day']", ["Ann Lee", "Bo Day"]),
    ("json list", BAND, '["Ann Lee", "Bo Day"]', ["Ann Lee", "Bo Day"]),
    ("list over lines", BAND, '[\n  "Ann Lee",\n  "Bo Day"\n]', ["Ann Lee", "Bo Day"]),
    ("set", BAND, '{"Ann Lee", "Bo Day"}', ["Ann Lee", "Bo Day"]),
    ("no closing bracket", BAND, '["Ann Lee", "Bo Day"', ["Ann Lee", "Bo Day"]),
    ("cut in an element", BAND, '["Ann Lee", "Bo D', ["Ann Lee"]),
    ("cut in a bare element", BAND, "[Ann Lee, Bo D", ["Ann Lee"]),
    ("no quotes", BAND, "[Ann Lee, Bo Day]", ["Ann Lee", "Bo Day"]),
    ("missing closing quote", BAND, '["Ann Lee, "Bo Day"]', ["Ann Lee", "Bo Day"]),
    ("missing last quote", BAND, '["Ann Lee", "Bo Day]', ["Ann Lee", "Bo Day"]),
    ("missing closing quotes", BAND, '["Ann Lee, "Bo Day, "Cy]', ["Ann Lee", "Bo Day", "Cy"]),
    ("the prompt held the opening", BAND, "Ann Lee', 'Bo Day']", ["Ann Lee", "Bo Day"]),
    ("the prompt held the opening, one", BAND, "Ann Lee']", ["Ann Lee"]),
    ("wrong closing bracket", BAND, '["Ann Lee", "Bo Day")', ["Ann Lee", "Bo Day"]),
    ("quoted without brackets", BAND, '"Ann Lee", "Bo Day"', ["Ann Lee", "Bo Day"]),
    ("curly quotes", BAND, "[“Ann Lee”, “Bo Day”]", ["Ann Lee", "Bo Day"]),
    ("apostrophe in single quotes", BAND, "['Côte d'Ivoire', 'Bo']", ["Côte d'Ivoire", "Bo"]),
    ("quotes in quotes", BAND, '["José "Pepe" Ruiz Jr.", "Bo"]', ['José "Pepe" Ruiz Jr.', "Bo"]),
    ("escapes", BAND, r'["Jos\u00e9", "O\"Hara"]', ["José", 'O"Hara']),
    ("trailing prose", BAND, '["Ann Lee"] are its members, as "everyone" knows.', ["Ann Lee"]),
    ("leading prose", BAND, 'The members are: ["Ann Lee"]', ["Ann Lee"]),
    ("tuple", BAND, '("Some Subject", "has member", ["Ann Lee", "Bo Day"])', ["Ann Lee", "Bo Day"]),
    ("tuple with a bare string", BAND, '("Some Subject", "has member", "Ann Lee")', ["Ann Lee"]),
    ("tuple with several strings", BAND, '("Some Subject", "has member", "Ann Lee", "Bo")', ["Ann Lee", "Bo"]),
    ("tuple of another spelling", BAND, '("some  subject!", "has member", "Ann Lee")', ["Ann Lee"]),
    ("tuple without quotes", BAND, "(Some Subject, has member, [Ann Lee, Bo Day])", ["Ann Lee", "Bo Day"]),
    ("tuple without relation", BAND, '("Some Subject", ["Ann Lee"])', ["Ann Lee"]),
    ("triple as a list", BAND, '["Some Subject", "has member", "Ann Lee"]', ["Ann Lee"]),
    ("tuple lines", BAND, '("Some Subject", "has member", "Ann")\n("Some Subject", "has member", "B")', ["Ann", "B"]),
    ("list of tuples", BAND, '[("Some Subject", "has member", "Ann"), ("Some Subject", "", "Bo")]', ["Ann", "Bo"]),
    ("plain tuple of objects", BAND, '("Ann Lee", "Bo Day", "Cy")', ["Ann Lee", "Bo Day", "Cy"]),
    ("tuple without last bracket", BAND, '("Some Subject", "has member", ["Ann Lee", "Bo"]', ["Ann Lee", "Bo"]),
    ("commas", BAND, "Ann Lee, Bo Day, Cy", ["Ann Lee", "Bo Day", "Cy"]),
    ("semicolons", BAND, "Ann Lee; Bo Day", ["Ann Lee", "Bo Day"]),
    ("semicolons keep commas", BAND, "Washington, D.C.; Rome", ["Washington, D.C.", "Rome"]),
    ("lines", BAND, "Ann Lee\nBo Day", ["Ann Lee", "Bo Day"]),
    ("and", BAND, "Ann Lee and Bo Day", ["Ann Lee", "Bo Day"]),
    ("list with and", BAND, "Ann Lee, Bo Day and Cy", ["Ann Lee", "Bo Day", "Cy"]),
    ("list with comma and and", BAND, "Ann Lee, Bo Day, and Cy.", ["Ann Lee", "Bo Day", "Cy"]),
    ("and in quotes", BAND, '["Ann and Bo"]', ["Ann and Bo"]),
    ("and without conjunction", WHOLE, "Trinidad and Tobago", ["Trinidad and Tobago"]),
    ("and in a known name", ELEMENT, "Na, Bosnia and Herzegovina", ["Na", "Bosnia and Herzegovina"]),
    ("no comma splitting", WHOLE, "Guangzhou Airport Co., Ltd.", ["Guangzhou Airport Co., Ltd."]),
    ("no comma splitting in a bare list", WHOLE, "[Washington, D.C.]", ["Washington, D.C."]),
    ("quotes decide", WHOLE, '["Washington, D.C.", "Rome"]', ["Washington, D.C.", "Rome"]),
    ("suffix of a name", BAND, "Sammy Davis, Jr., Ann Lee", ["Sammy Davis, Jr.", "Ann Lee"]),
    ("numbered", BAND, "1. Ann Lee\n2. Bo Day", ["Ann Lee", "Bo Day"]),
    ("numbered in brackets", BAND, "1) Ann Lee\n2) Bo Day", ["Ann Lee", "Bo Day"]),
    ("bulleted", BAND, "- Ann Lee\n- Bo Day", ["Ann Lee", "Bo Day"]),
    ("bullets after a lead", BAND, "They are:\n\n* Ann Lee\n* Bo Day\n\nI hope it helps!", ["Ann Lee", "Bo Day"]),
    ("bullets with remarks", BAND, "- **Ann Lee**: vocals\n- Bo Day – drums, bass", ["Ann Lee", "Bo Day"]),
    ("answer line", BAND, "REASONING: It has three, I think.\nANSWER: Ann Lee, Bo Day", ["Ann Lee", "Bo Day"]),
    ("last answer line", BAND, "ANSWER: Cy\nOr rather:\nANSWER: Ann Lee", ["Ann Lee"]),
    ("bold answer label", BAND, "Thus.\n\n**ANSWER:** Ann Lee", ["Ann Lee"]),
    ("bold answer", BAND, "Thus.\n\nFinal answer: **Ann Lee**", ["Ann Lee"]),
    ("answer over lines", BAND, "ANSWER:\n- Ann Lee\n- Bo Day", ["Ann Lee", "Bo Day"]),
    ("answer as a list", BAND, 'ANSWER: ["Ann Lee"]', ["Ann Lee"]),
    ("explanation after the answer", BAND, "ANSWER: Ann Lee\nNote: Bo Day left, Cy too.", ["Ann Lee"]),
    ("after thinking", BAND, '<think>ANSWER: Cy, or ["Di"]?</think>\n\nAnn Lee', ["Ann Lee"]),
    ("json object", BAND, '{"answer": ["Ann Lee", "Bo Day"]}', ["Ann Lee", "Bo Day"]),
    ("json with reasoning", BAND, '{"reasoning": "a, b", "answers": "Ann Lee"}', ["Ann Lee"]),
    ("json triples", BAND, '{"subject": "Some Subject", "objects": [{"name": "Ann Lee"}]}', ["Ann Lee"]),
    ("json with the relation's name", BAND, '{"BandHasMember": ["Ann Lee"]}', ["Ann Lee"]),
    ("json with other fields", BAND, '{"kind": "trio", "band_members": ["Ann Lee"], "since": 1990}', ["Ann Lee"]),
    ("json with a list", BAND, '{"kind": "trio", "people": ["Ann Lee"]}', ["Ann Lee"]),
    ("json of the object type", BAND, '{"status": "known", "musician": "Ann Lee", "role": "singer"}', ["Ann Lee"]),
    ("json with another key", BAND, '{"members": ["Ann Lee"], "confidence": 0.5}', ["Ann Lee"]),
    ("code fence", BAND, 'Sure!\n```json\n["Ann Lee",\n "Bo Day"]\n```\nAnything else?', ["Ann Lee", "Bo Day"]),
    ("unclosed fence", BAND, '```python\n["Ann Lee"]', ["Ann Lee"]),
    ("trailer", BAND, "Ann Lee (born 1960), Bo Day (drums, vocals)", ["Ann Lee", "Bo Day"]),
    ("trailer in quotes", BAND, '["Ann Lee (1960-2001)"]', ["Ann Lee"]),
    ("none among names", BAND, '["None", "Ann Lee"]', ["Ann Lee"]),
    ("name that looks like a denial", BAND, "No Doubt", ["No Doubt"]),
    ("title that looks like a denial", WHOLE, "Unknown Pleasures", ["Unknown Pleasures"]),
    ("symbol that looks like a denial", ELEMENT, '["Na", "Cl"]', ["Na", "Cl"]),
    ("listed name before others that looks like a denial", ELEMENT, "NA, Xe", ["NA", "Xe"]),
    ("table without a rule", BAND, "Role | Musician\nVocals | Ann Lee\nDrums | Bo Day", ["Ann Lee", "Bo Day"]),
    ("leading apostrophe", BAND, "'s-Hertogenbosch", ["'s-Hertogenbosch"]),
    ("leading bracket", BAND, "(G)I-DLE", ["(G)I-DLE"]),
    ("hedge", BAND, "Probably Ann Lee", ["Ann Lee"]),
    ("lead", BAND, "Here are the members: Ann Lee, Bo Day", ["Ann Lee", "Bo Day"]),
    ("question said again", BAND, "The members of Some Subject are Ann Lee and Bo Day.", ["Ann Lee", "Bo Day"]),
    ("title said of the subject", WHOLE, 'The book of Some Subject is "The Last Lion"', ["The Last Lion"]),
    ("numbers behind bullets", BAND, "They are:\n\n- 1. Ann Lee\n- 2. Bo Day\n", ["Ann Lee", "Bo Day"]),
    ("run-on of a base model", BAND, "Ann Lee\n\nQ: Who is next?\nA: Bo Day", ["Ann Lee"]),
    ("number", AREA, "ANSWER: 278.28", ["278.28"]),
    ("number in a tuple", SEATS, '("Some Subject", "has member", [2])', ["2"]),
    ("thousands in quotes", SEATS, '["1,250"]', ["1250"]),
    ("number in json", AREA, '{"value": 120.50, "unit": "km2"}', ["120.5"]),
    ("number in prose", AREA, "The area is approximately 74.36 km² (28.71 sq mi).", ["74.36"]),
    ("number word", SEATS, "three", ["3"]),
]

DENIALS = ("none", "None.", "[]", "[ ]", "['']", "N/A", "null", "unknown", '["-"]', '["None"]', "['Unknown']")
MORE_DENIALS = (
    "Not applicable",
    "nobody",
    '["No"]',
    "False",
    "still alive",
    "I don't know",
    "I don't know it.",
    "set()",
)
NOTHING: list[tuple[Relation, str, State]] = [
    *((BAND, text, State.ABSTAINED) for text in (*DENIALS, *MORE_DENIALS)),
    (BAND, '("Some Subject", "has member", [])', State.ABSTAINED),
    (BAND, '("Some Subject", "has member", [', State.TRUNCATED),
    (BAND, '("Some Subject", "has member", "None")', State.ABSTAINED),
    (BAND, '("Some Subject", "has member", []) is already correct as it has "no members" at all.', State.ABSTAINED),
    (BAND, '{"answer": null}', State.ABSTAINED),
    (BAND, '{"answer": []}', State.ABSTAINED),
    (BAND, "ANSWER: None (the band is fictional)", State.ABSTAINED),
    (BAND, "Unknown, as there are no records.", State.ABSTAINED),
    (PARENT, "no parent organisation", State.ABSTAINED),
    (PARENT, '("Some Subject", "has parent", "No parent organisation")', State.ABSTAINED),
    (PARENT, "No Parent Organisation", State.ABSTAINED),
    (PARENT, "Some Subject does not have a parent organization.", State.ABSTAINED),
    (PARENT, "The company is not publicly traded.", State.ABSTAINED),
    (BAND, "As of the last update, Some Subject is alive. So the fact is not applicable.", State.ABSTAINED),
    (AREA, "ANSWER: N/A as of 2023", State.ABSTAINED),
    (AREA, "unknown", State.ABSTAINED),
    (SEATS, "No data", State.ABSTAINED),
    (BAND, "", State.UNPARSED),
    (BAND, " \n\t", State.UNPARSED),
    (BAND, "I'm sorry, but as an AI language model I have no access to that, really.", State.UNPARSED),
    (BAND, "I cannot provide this information.", State.UNPARSED),
    (BAND, "The band was founded in Leeds and it has toured for years.", State.UNPARSED),
    (BAND, "The city of Some Subject lies on the 12th river.", State.UNPARSED),
    (BAND, "A friend of Some Subject is Ann Lee and has toured with the band for years.", State.UNPARSED),
    (BAND, "The members of Some Subject are not specified.", State.ABSTAINED),
    (BAND, "The members of Some Subject are members of Some Subject.", State.UNPARSED),
    (BAND, '["True"]', State.UNPARSED),
    (BAND, '["Some Subject is a band from Leeds"]', State.UNPARSED),
    (BAND, '["Ann', State.TRUNCATED),
    (BAND, "[", State.TRUNCATED),
    (BAND, "<think> The members are Ann and", State.TRUNCATED),
    (BAND, "ANSWER:", State.TRUNCATED),
    (BAND, "REASONING: The band was founded in Leeds, where it toured since the singer, who is still", State.TRUNCATED),
    (AREA, "The lake is 10 km long, 5 wide and was dammed in 1920 and then again in the year after", State.TRUNCATED),
]

NUMBERS: list[tuple[Relation, str, list[str]]] = [
    (AREA, "1,250 km²", ["1250"]),
    (AREA, "1 250,5 km2", ["1250.5"]),
    (AREA, "5,80,367", ["580367"]),
    (AREA, "1.250.000", ["1250000"]),
    (AREA, "73,5", ["73.5"]),
    (AREA, "10-12 km2", ["11"]),
    (AREA, "between 10 and 12 square kilometres", ["11"]),
    (AREA, "1.5 to 2 million", ["1750000"]),
    (AREA, "about 2.5 million", ["2500000"]),
    (AREA, "1.2 thousand", ["1200"]),
    (AREA, "1.2e3", ["1200"]),
    (AREA, "7.4×10^3", ["7400"]),
    (AREA, "61.32 km² (23.68 sq mi)", ["61.32"]),
    (AREA, "250 ha", ["2.5"]),
    (AREA, "1 square mile", ["2.589988"]),
    (AREA, "10, 12", ["10", "12"]),
    (AREA, "the 19th of the 1990s", []),
    (SEATS, "45,000 (2019)", ["45000"]),
    (SEATS, "12.000", ["12000"]),
    (SEATS, "45k", ["45000"]),
    (SEATS, "2-3", ["2"]),
    (SEATS, "The capacity is 45,000 as of 2019", ["45000"]),
    (SEATS, "twenty-five", ["25"]),
    (SEATS, "one hundred and twenty", ["120"]),
    (SEATS, "two million", ["2000000"]),
    (SEATS, "two dozen", ["24"]),
    (SEATS, "zero", ["0"]),
    (SEATS, "1" * 100, []),
    (SEATS, "many", []),
]


def outcome(parsed: Any) -> tuple[State, tuple[str, ...]]:
    """Return the state and the objects of a reply that was parsed."""
    return parsed.state, parsed.objects


@pytest.mark.parametrize(
    ("asked", "text", "objects"), [case[1:] for case in ANSWERS], ids=[case[0] for case in ANSWERS]
)
def test_objects(asked: Relation, text: str, objects: list[str]) -> None:
    assert outcome(parse(text, asked, SUBJECT)) == (State.ANSWERED, tuple(objects))


@pytest.mark.parametrize(("asked", "text", "state"), NOTHING)
def test_nothing_and_why(asked: Relation, text: str, state: State) -> None:
    assert outcome(parse(text, asked, SUBJECT)) == (state, ())


@pytest.mark.parametrize(("asked", "text", "numbers"), NUMBERS)
def test_numbers(asked: Relation, text: str, numbers: list[str]) -> None:
    assert read_numbers(text, asked) == numbers


LETTERS = "abghklmprtzéüñßşβд"
NAME = st.text(LETTERS, min_size=3, max_size=8).map(str.capitalize)
NAMES = st.lists(st.lists(NAME, min_size=1, max_size=3).map(" ".join), min_size=1, max_size=8, unique_by=str.casefold)
WORD = st.one_of(NAME, NAME.map("O'{}".format), NAME.map("{}, Ltd".format))
QUOTED = st.lists(st.lists(WORD, min_size=1, max_size=3).map(" ".join), min_size=1, max_size=6, unique_by=str.casefold)
STYLES: dict[str, Callable[[list[str]], str]] = {
    "commas": ", ".join,
    "semicolons": "; ".join,
    "lines": "\n".join,
    "numbered": lambda names: "\n".join(f"{n}. {name}" for n, name in enumerate(names, 1)),
    "bulleted": lambda names: "\n".join(f"- {name}" for name in names),
    "answer": lambda names: "REASONING: It is so.\nANSWER: " + ", ".join(names),
    "bare list": lambda names: f"[{', '.join(names)}]",
    "bare tuple": lambda names: f"({SUBJECT}, has member, [{', '.join(names)}])",
}
QUOTED_STYLES: dict[str, Callable[[list[str]], str]] = {
    "python": repr,
    "json": json.dumps,
    "unicode json": lambda names: json.dumps(names, ensure_ascii=False, indent=1),
    "tuple": lambda names: repr((SUBJECT, "has member", names)),
    "json object": lambda names: json.dumps({"reasoning": "None, none.", "answer": names}),
    "fence": lambda names: f"Here you are:\n```json\n{json.dumps(names)}\n```",
    "answer": lambda names: f"Some thoughts.\nANSWER: {names!r}",
}


@pytest.mark.parametrize("style", STYLES)
@given(names=NAMES)
@example(names=["Ñañ"])
def test_plain_lists_round_trip(style: str, names: list[str]) -> None:
    assert parse(STYLES[style](names), BAND, SUBJECT).objects == tuple(names)


@pytest.mark.parametrize("style", QUOTED_STYLES)
@given(names=QUOTED)
def test_quoted_lists_round_trip(style: str, names: list[str]) -> None:
    assert parse(QUOTED_STYLES[style](names), BAND, SUBJECT).objects == tuple(names)


@given(
    st.integers(0, 10**12), st.sampled_from(["{}", "{:,}", "about {:,} spectators", "ANSWER: {:,}", "[{}]", '["{:,}"]'])
)
def test_numbers_round_trip(value: int, style: str) -> None:
    assert parse(style.format(value), SEATS, SUBJECT).objects == (str(value),)


FRAGMENTS = [
    "[",
    "]",
    "(",
    ")",
    "{",
    "}",
    '"',
    "'",
    ",",
    ":",
    "\n",
    "- ",
    "ANSWER:",
    "None",
    "Ann",
    "```",
    "</think>",
    "1,2",
    "\\",
    " and ",
]


@given(st.one_of(st.text(), st.lists(st.sampled_from(FRAGMENTS), max_size=30).map("".join)))
@pytest.mark.parametrize("asked", [BAND, WHOLE, ELEMENT, AREA], ids=["band", "whole", "closed", "number"])
def test_any_text_parses(asked: Relation, text: str) -> None:
    parsed = parse(text, asked, SUBJECT)
    assert (parsed.state is State.ANSWERED) == bool(parsed.objects)
    assert all(name.strip() for name in parsed.objects)


HUGE = [
    *FRAGMENTS,
    "“]',",
    '["a", ',
    '{"a":',
    "**",
    "`",
    " ",
    "a ",
    "x, ",
    "(“",
    "is alive. ",
    "1-",
    "- a\n",
    '"]',
    "one ",
    ".",
    "<think>",
    "</think>",
    "<answer>",
    "a\n\n\n\n",
    "\nuser\n",
    "| a |\n",
    "<a>",
    "[a](",
    "\\boxed{",
    "> a\n",
    '"a',
    "a\tb\n",
    "a is ",
]


@pytest.mark.parametrize("asked", [BAND, AREA], ids=["names", "number"])
@pytest.mark.parametrize("fragment", HUGE)
def test_time_grows_no_faster_than_the_text(fragment: str, asked: Relation) -> None:
    assert in_proportion(lambda text: parse(text, asked, SUBJECT), fragment)


def test_time_grows_no_faster_than_a_word() -> None:
    assert in_proportion(lambda text: parse(f"{text}:\n\nb", BAND, SUBJECT), "a", 64)


def test_an_open_quotation_mark_before_a_very_long_text_opens_no_table() -> None:
    assert len(parse('"' + "x" * 140_000, relation(), SUBJECT).objects) <= 1


def test_a_long_list_is_kept_whole() -> None:
    names = tuple(f"Name Number {index}x" for index in range(2500))
    assert parse(json.dumps(names), BAND, SUBJECT).objects == names


MUTE = [
    "-",
    "--",
    "—",
    "- ",
    "{}",
    "{ }",
    "()",
    '""',
    "''",
    "“”",
    "```json\n{}\n```",
    "ANSWER: -",
    'ANSWER: ""',
    "**-**",
    ".",
]


@pytest.mark.parametrize("text", MUTE)
@pytest.mark.parametrize("read", [parse, verbatim])
def test_mere_marks_are_no_answer(read: Callable[..., Any], text: str) -> None:
    for asked in (BAND, AREA):
        assert outcome(read(text, asked, "France")) == (State.UNPARSED, ())


@pytest.mark.parametrize("text", ["[]", '[""]', "['']", "[ ]", '{"answer": []}', '{"answer": ""}', "[[]]"])
def test_an_empty_list_is_an_abstention(text: str) -> None:
    for asked in (BAND, AREA):
        assert outcome(parse(text, asked, "France")) == (State.ABSTAINED, ())
        assert verbatim(text, asked, "France") == parse(text, asked, "France")


@pytest.mark.parametrize("null", ["-", "{}", '""'])
def test_marks_that_a_prompt_asks_for_are_an_abstention(null: str) -> None:
    for asked in (BAND, AREA):
        assert outcome(parse(null, asked, "France", null)) == (State.ABSTAINED, ())
        assert verbatim(null, asked, "France", null) == parse(null, asked, "France", null)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('["A*"]', ["A*"]),
        ("A*, B and C*", ["A*", "B", "C*"]),
        ("**A***", ["A*"]),
        ("Sagittarius A*", ["Sagittarius A*"]),
        ('["Chile*", "Peru"]', ["Chile", "Peru"]),
        ("C♯", ["C♯"]),
        ("It was influenced by .NET.", [".NET"]),
        ('["Node.js", ".NET"]', ["Node.js", ".NET"]),
    ],
)
def test_signs_that_belong_to_a_name_stay(text: str, names: list[str]) -> None:
    asked = small_relation(question="Which works was {subject} influenced by?", triple="was influenced by")
    assert list(sifted(parse(text, asked, "X").objects, asked, "X")[0]) == names


GERMAN = {
    "language": "de",
    "question": "Wer ist der Architekt von {subject}?",
    "clozes": ("Der Architekt von {subject} ist {mask}.",),
    "statement": "{object} hat {subject} entworfen.",
    "triple": "hat den Architekten",
}


@pytest.mark.parametrize(
    ("text", "objects"),
    [
        ("Die Brücke wurde von Prof. Johann Andreas Schubert entworfen.", ("Prof. Johann Andreas Schubert",)),
        ("Der Architekt war Dr.-Ing. Fritz Leonhardt.", ("Dr.-Ing. Fritz Leonhardt",)),
        ("Architekt unbekannt", ()),
        ("Wasserstraßen- und Schifffahrtsamt Ostsee", ("Wasserstraßen- und Schifffahrtsamt Ostsee",)),
    ],
)
def test_titles_unknown_nouns_and_hanging_hyphens_in_german(text: str, objects: tuple[str, ...]) -> None:
    asked = small_relation("Architekt", object_type=EntityType("Architekt", "Q43229"), **GERMAN)
    assert parse(text, asked, "Waldbrücke").objects == objects
