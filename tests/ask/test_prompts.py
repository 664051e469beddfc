from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opened import part
from prompt_parts import prefix, suffix
from space import SPACE

from lmkbc import InputError, registry
from lmkbc.answer.parse import parse
from lmkbc.ask.prompts import Composer
from lmkbc.models.base import Prompt
from lmkbc.testing import Example, GoldObject, Query

BORDERS, CHILDREN = "CountryBordersCountry", "PersonHasNumberOfChildren"
RELATIONS = {name: SPACE.relation(name) for name in SPACE.edition("mini").relations}
QUERY = Query("Utopia", BORDERS, "Q1")
SHOTS = (
    Example(Query("France", BORDERS), (GoldObject(("Spain", "España"), "Q29"), GoldObject(("Italy",), "Q38"))),
    Example(Query("Iceland", BORDERS), ()),
)


def prompt(query: Query = QUERY, shots: tuple[Example, ...] = SHOTS, context: str = "", **settings: Any) -> Prompt:
    style = part("prompt", **settings)
    return Composer(style, RELATIONS, query.relation, edition="2023").prompt(query, shots, context=context)


def test_chat_turns_stand_in_order() -> None:
    found = prompt(task="You know borders.\nList each {{ object_type }}, or {{ null }}.", null='[""]')
    assert found.messages() == [
        {"role": "system", "content": 'You know borders.\nList each country, or [""].'},
        {"role": "user", "content": RELATIONS[BORDERS].question.format(subject="France")},
        {"role": "assistant", "content": '["Spain", "Italy"]'},
        {"role": "user", "content": RELATIONS[BORDERS].question.format(subject="Iceland")},
        {"role": "assistant", "content": '[""]'},
        {"role": "user", "content": RELATIONS[BORDERS].question.format(subject="Utopia")},
    ]


FORMS = ("completion", "single", "chat")
BLOCKS = {
    "triple": "{{ subject }}, {{ phrase }}:",
    "tuple": '("{{ subject }}", "{{ phrase }}",',
    "record": "Subject: {{ subject }}{% if subject_id %} ({{ subject_id }}){% endif %}\nRelation: {{ phrase }}\n==>",
    "": "",
}
TEXTS = {
    "triple": 'France, borders: ["Spain", "Italy"]\nIceland, borders: []\nUtopia, borders:',
    "tuple": '("France", "borders", ["Spain", "Italy"]\n("Iceland", "borders", []\n("Utopia", "borders",',
    "record": 'Subject: France\nRelation: borders\n==> ["Spain", "Italy"]\n\nSubject: Iceland\nRelation: borders\n'
    "==> []\n\nSubject: Utopia (Q1)\nRelation: borders\n==>",
}
RECALL = {"block": "{{ question }}\nWhat is known:", "answer": "{{ recalled }}\nAnswer: {{ answer }}"}


@pytest.mark.parametrize("block", TEXTS)
def test_completion_texts_end_where_the_answer_begins(block: str) -> None:
    assert prompt(form="completion", block=BLOCKS[block]).text == TEXTS[block]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("style", [*({"block": block} for block in BLOCKS.values()), RECALL])
def test_the_subject_comes_last_and_the_rest_is_shared(form: str, style: dict[str, str]) -> None:
    one, other = (prompt(Query(name, BORDERS), form=form, **style) for name in ("Utopia", "Oz"))
    assert one.static == other.static
    assert prefix(one) + suffix(one) == one.text if form != "chat" else one.static
    assert "Utopia" in suffix(one)
    assert "Utopia" not in prefix(one)
    assert suffix(one).replace("Utopia", "Oz") == suffix(other)
    assert all(name in prefix(one) for name in ("France", "Spain", "Iceland"))


def test_recall_first_shows_what_is_known_before_each_answer() -> None:
    text = prompt(form="completion", **RECALL).text
    assert text.count("What is known:") == 3
    assert text.endswith("What is known:")
    assert RELATIONS[BORDERS].statement.format(subject="France", object="Spain") in text
    assert text.index("What is known:") < text.index('Answer: ["Spain", "Italy"]')
    assert part("prompt", answer=RECALL["answer"]).stops == ("\n\n",)


def test_an_example_reasons_from_its_facts_to_its_answer() -> None:
    text = prompt(form="single", listing="comma", null="None", answer="{{ reasoning }}\nANSWER: {{ answer }}").text
    statement = RELATIONS[BORDERS].statement
    spain, italy = (statement.format(subject="France", object=name) for name in ("Spain", "Italy"))
    assert f"France is a country. {spain} {italy} That makes 2 to name.\nANSWER: Spain, Italy" in text
    assert "Nothing of this kind is known of Iceland. So there is none to name.\nANSWER: None" in text
    long = Example(Query("France", BORDERS), tuple(GoldObject((name,)) for name in "ABCDE"))
    text = prompt(shots=(long,), form="single", answer="{{ reasoning }}\n{{ answer }}").text
    assert "That makes 5 to name, with those not told here.\n" in text


@pytest.mark.parametrize(
    ("listing", "text"),
    [
        ("json", '["a, b", "c\\"d"]'),
        ("python", "['a, b', 'c\"d']"),
        ("comma", 'a, b, c"d'),
        ("semicolon", 'a, b; c"d'),
        ("line", 'a, b\nc"d'),
    ],
)
def test_listings(listing: str, text: str) -> None:
    relation = RELATIONS[BORDERS]
    assert part("prompt", listing=listing).listed(["a, b", 'c"d'], relation) == text
    assert part("prompt", listing=listing, null="None").listed([], relation) == "None"


@pytest.mark.parametrize("listing", registry.LISTINGS.own)
@pytest.mark.parametrize(
    ("name", "names"),
    [
        ("PersonHasEmployer", ("University of California, Berkeley", "Harvard University")),
        ("PersonHasEmployer", ("University of Oxford", "University of Oxford Press", "Santander Group")),
        ("CompanyHasParentOrganisation", ("Audi", "Volkswagen Group")),
        ("CityLocatedAtRiver", ("Anacostia River", "Potomac River", "Rock Creek")),
        ("PersonPlaysInstrument", ("piano", "keyboard instrument", "synthesizer", "melodica", "voice")),
        ("companyTradesAtStockExchange", ("Nasdaq", "New York Stock Exchange", "Frankfurt Stock Exchange")),
        ("StateBordersState", ("Lampang", "Phayao", "Nan", "Uttaradit", "Sukhothai")),
        ("PersonHasProfession", ("politician", "pastor", "non-fiction writer", "professor")),
        ("PersonCauseOfDeath", ("non-Hodgkin lymphoma",)),
    ],
)
def test_what_an_example_shows_is_read_as_it_was_shown(listing: str, name: str, names: tuple[str, ...]) -> None:
    relation = SPACE.relation(name)
    answer = part("prompt", listing=listing, null="None").listed(names, relation)
    assert parse(answer, relation, "Some Subject").objects == names


def test_only_the_query_is_worded_as_asked() -> None:
    text = prompt(form="completion", ask="Question: Name what {{ subject }} {{ phrase }}.\nAnswer:").text
    assert text.endswith("Question: Name what Utopia borders.\nAnswer:")
    assert text.count("Name what") == 1


def test_examples_of_other_relations_are_worded_as_their_own() -> None:
    other = Example(Query("Ada", CHILDREN), (GoldObject(("3",), "3"),))
    text = prompt(shots=(other,), form="completion", block="{{ subject }}, {{ relation }}:").text
    assert text == f'Ada, {CHILDREN}: ["3"]\nUtopia, {BORDERS}:'


def test_ids_are_written_where_ids_are_asked() -> None:
    assert (
        'France, borders: ["Q29", "Q38"]'
        in prompt(form="completion", block="{{ subject }}, {{ phrase }}:", component="bl23-gpt-ids/prompt").text
    )


def test_context_stands_between_the_examples_and_the_question() -> None:
    found = prompt(context="Utopia is an {island}.\n")
    assert suffix(found).startswith("Context: Utopia is an {island}.\n\n")
    assert found.static == prompt().static


def test_a_text_as_one_message() -> None:
    found = prompt(component="lix23/prompt", form="single")
    assert found.messages() == [{"role": "assistant", "content": found.text}]
    assert prompt(form="single").messages() == [{"role": "user", "content": found.text}]


@given(st.text(), st.sampled_from([*BLOCKS.values()]), st.sampled_from(FORMS))
def test_any_subject_is_put_in_whole_on_one_line(subject: str, block: str, form: str) -> None:
    name = " ".join(subject.split())
    own = suffix(prompt(Query(subject, BORDERS), form=form, block=block))
    assert name in own
    assert len(own.splitlines()) <= 3 + len(name.splitlines())


@pytest.mark.parametrize("subject", ["{{ phrase }}", "{phrase}{other}", "{% if x %}", "{mask} {subject}", "\\{{"])
def test_what_is_filled_in_is_not_looked_at_again(subject: str) -> None:
    asked = Query(subject, BORDERS)
    assert prompt(asked, form="completion", block="{{ subject }}|{{ relation }}:").text.splitlines()[-1] == (
        f"{subject}|{BORDERS}:"
    )
    assert prompt(asked).messages()[-1]["content"] == RELATIONS[BORDERS].question.replace("{subject}", subject)


def test_a_template_cannot_fill_the_memory() -> None:
    with pytest.raises(InputError, match="makes 12,500,000 characters, far more than its values have"):
        prompt(Query("a" * 125_000, BORDERS), form="completion", block="{{ subject }}" * 100)


def test_an_example_says_its_own_words_where_it_has_any() -> None:
    style: dict[str, Any] = {
        "form": "single",
        "block": "Q: {{ question }}\n",
        "answer": "So: {{ reasoning }}\nA: {{ answer }}",
    }
    own = Example(SHOTS[0].query, SHOTS[0].objects, (("question", "Who {x}?"), ("reasoning", "Two."), ("answer", "S")))
    found = prompt(shots=(own, SHOTS[1]), task="Tell:\n", ask="Now {{ question }}", null="no", **style).text
    asked = RELATIONS[BORDERS].question
    told = "Iceland is a country. Nothing of this kind is known of Iceland. So there is none to name."
    assert found == (
        f"Tell:\nQ: Who {{x}}?\nSo: Two.\nA: S\n\nQ: {asked.format(subject='Iceland')}\nSo: {told}\nA: no\n\n"
        f"Now {asked.format(subject='Utopia')}"
    )


def test_a_name_and_its_place_are_told_apart_and_objects_by_the_alphabet() -> None:
    cut = "{{ subject.partition(' in ')[0] }} lies{{ subject.partition(' in ')[1:] | join }}"
    answer = "{{ objects | sort | join(', ') or null }}"
    style: dict[str, Any] = {"form": "completion", "listing": "comma", "answer": answer, "null": "none"}
    found = prompt(Query("Rome in Texas in USA", BORDERS), block="{{ subject }}: " + cut + ":", **style).text
    assert found.startswith("France: France lies: Italy, Spain\nIceland: Iceland lies: none\n")
    assert found.endswith("Rome in Texas in USA: Rome lies in Texas in USA:")
