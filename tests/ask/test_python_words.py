"""Published words in Python source become frames, and its code is never run."""

from __future__ import annotations

from typing import Any

import pytest

from lmkbc.ask.wording import NamedWords, WordFile, WordingSource
from lmkbc.ask.words import converted
from lmkbc.errors import InputError

SOURCE = r"""
raise SystemExit("this is run")
TABLE = {"hasArea": "How big is " + "it?"}
TORN = {"hasArea": "How big is it?", "hasCapacity": read("capacity.txt")}

def ask(who, relation, gap):
    if relation == "hasArea":
        text = f"{who} is as large as {gap}."
        texts = [text, "How large? {} is {size}.".format(who, size=gap)]
    elif relation == "big" and gap:
        phrase = "is as large as"
    return texts

def shown(who, rows):
    lines = ["Sizes of islands.\n"]
    for row in rows:
        lines.append(f"{row['name']} is an island. It has {size(row)} km2.\n")
    lines.append(f"{who} is an island.")
    return "\n".join(lines)

class Model:
    def __init__(self):
        self.task = (
            "Tell the size. "
            'Say "none" if {there} is none.')

    def joined(self, who):
        text = clause(who)
        other = "Of " + who + " " + clause(who)
        other += "!"
        if who:
            unsure = "Sure."
        return [{"role": "user", "text": f"Again. {who}"}, {"text": "Tell the size."}]

def whole(who, kind, rows):
    lead = "Be brief. "
    if kind == "long":
        count = int(kind)
        style = f"At most {count} words."
    elif kind in KINDS:
        style = "One word."
    else:
        style = "No words."
    shown = ""
    if rows:
        shown = "\n\nLike this:\n" + joined(rows)
    return f"{lead}{style}{shown}\n\nNow: {question(who)}"

def first(kind, who):
    if kind == "own":
        table = {"hasArea": [("%s is as large as %s.", True, 1.0)]}
    else:
        table = {"hasArea": [("Another %s, %s.", True, 1.0)]}
    steps = [{"": [(f"Is {who} an isle? {gap}.", 1.0)]}, {"yes": None}]
    named = {"isle": f"the isle of {who}", "land": f"{who} land"}
    return steps

def torn(relation):
    if relation == "hasCapacity":
        text = "one"
    elif relation == "hasArea":
        text = read(relation)

def twice(relation):
    if relation == "hasArea":
        text = "one"
    if relation == "hasArea":
        text = "two"
"""
SLOTS = {"who": "{subject}", "gap": "{mask}", "row['name']": "{subject}", "size(row)": "{answer}"}


def frames(*words: NamedWords, code: str = SOURCE, **slots: str) -> dict[str, dict[str, Any]]:
    file = WordFile(format="python", url="https://example.org/ask.py", words=words, slots={**SLOTS, **slots})
    return converted(WordingSource(licence="MIT", credit="Ann", files=(file,)), [code.encode()]).frames


def test_texts_are_put_together_and_what_the_code_fills_is_a_slot() -> None:
    made = frames(NamedWords(name="ask.texts", setting="clozes"))
    assert made == {"hasArea": {"clozes": ["{subject} is as large as {mask}.", "How large? {subject} is {mask}."]}}
    assert frames(NamedWords(name="TABLE")) == {"hasArea": {"block": "How big is it?"}}


def test_lines_are_header_example_and_query() -> None:
    made = frames(NamedWords(name="shown.lines", setting="lines", relation="hasArea", frame={"null": "no"}))
    assert made["hasArea"] == {
        "task": "Sizes of islands.",
        "block": "{subject} is an island.",
        "answer": "It has {answer} km2.",
        "separator": "\n\n",
        "null": "no",
    }


def test_words_for_all_relations_stand_beside_those_of_each() -> None:
    made = frames(
        NamedWords(name="Model.__init__.task", setting="task", relation="*"),
        NamedWords(name="Model.joined.other", relation="hasArea"),
        **{"clause(who)": "{phrase}?"},
    )
    assert made == {
        "hasArea": {"task": 'Tell the size. Say "none" if {there} is none.', "block": "Of {subject} {phrase}?!"}
    }


def test_a_phrase_stands_in_the_block_and_an_ask_in_the_second_turn() -> None:
    made = frames(
        NamedWords(name="Model.joined.other", relation="*"),
        NamedWords(name="ask.phrase", slot="phrase", relations={"big": "hasArea"}),
        NamedWords(name="Model.joined.text[1]", setting="ask", relation="*"),
        NamedWords(name="Model.joined.text[0]", setting="follow_up", relation="*"),
        **{"clause(who)": "{phrase}", "who": "{ask}"},
    )
    assert made["hasArea"] == {
        "block": "Of {ask} is as large as!",
        "ask": "Tell the size.",
        "follow_up": "Again. Tell the size.",
    }
    assert made["*"]["block"] == "Of {ask} {phrase}!"


def test_what_code_returns_is_a_whole_text_with_the_words_of_one_case_in_it() -> None:
    question = NamedWords(name="TABLE", slot="question")
    made = frames(
        NamedWords(name="whole.return", setting="text", relation="*"),
        NamedWords(name="whole.style", slot="style", relation="*", when="not kind in KINDS"),
        NamedWords(name="whole.style", slot="style", relation="hasArea", when="kind == 'long'", slots={"count": "9"}),
        NamedWords(name="whole.shown", slot="shown", relation="*", when="rows"),
        question,
        style="{style}",
        shown="{shown}",
        **{"joined(rows)": "{examples}", "question(who)": "{question}"},
    )
    assert made == {
        "hasArea": {
            "task": "Be brief. At most 9 words.\n\nLike this:\n",
            "task_end": "",
            "separator": "\n\n",
            "ask": "Now: How big is it?",
        }
    }


def test_clozes_in_old_formats_a_precondition_and_the_forms_of_a_subject() -> None:
    file = WordFile(
        format="python",
        url="https://example.org/ask.py",
        words=(
            NamedWords(name="first.table", setting="clozes", when="kind == 'own'"),
            NamedWords(name="first.[0]", setting="precondition", relation="hasArea"),
            NamedWords(name="first.named", setting="forms", relation="hasArea"),
        ),
        slots={"%s": ("{subject}", "{mask}"), "who": "{subject}", "gap": "{mask}", "True": "", "1.0": ""},
    )
    made = converted(WordingSource(licence="MIT", credit="Ann", files=(file,)), [SOURCE.encode()]).frames
    assert made["hasArea"] == {
        "clozes": ["{subject} is as large as {mask}."],
        "precondition": "Is {subject} an isle? {mask}.",
        "forms": {"isle": "the isle of {subject}", "land": "{subject} land"},
    }


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (NamedWords(name="first.table", when="kind == 'none'"), "it has no condition \"kind == 'none'\""),
        (NamedWords(name="ask.nothing"), "it assigns nothing to 'ask.nothing'"),
        (NamedWords(name="told.text"), "it defines no 'told' of 'told.text'"),
        (NamedWords(name="Model.joined.text"), "what it assigns to 'Model.joined.text' is no text that can be read"),
        (NamedWords(name="Model.joined.unsure"), "what it assigns to 'Model.joined.unsure' is no text"),
        (NamedWords(name="Model.joined.text[7]"), "it has no text 7 under a key 'text'"),
        (NamedWords(name="Model.joined.other", relation="x"), "slots does not say what stands for 'clause(who)'"),
        (NamedWords(name="ask.texts", relation="x"), "'ask.texts' is another one for each relation"),
        (NamedWords(name="ask.texts"), "'ask.texts' has 2 texts, and not one"),
        (NamedWords(name="ask.texts", setting="lines"), "'ask.texts' has 2 parts, and not a header, an example"),
        (
            NamedWords(name="ask.texts", relations={"big": "x"}),
            "'ask.texts' has 'hasArea', which relations does not name",
        ),
        (NamedWords(name="TORN"), "what it assigns to 'TORN' for 'hasCapacity' is no text that can be read"),
        (NamedWords(name="torn.text"), "what it assigns to 'text' for 'hasArea' is no text that can be read"),
        (NamedWords(name="twice.text"), "it says two things of 'hasArea': 'text' is assigned twice"),
    ],
)
def test_what_cannot_be_read_is_told(words: NamedWords, said: str) -> None:
    with pytest.raises(InputError) as caught:
        frames(words)
    assert str(caught.value).startswith("https://example.org/ask.py is not as its format 'python' has it: ")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("def text(:", "it is no Python that can be read: invalid syntax"),
        ("text = " + "(" * 9000, "it is no Python that can be read: too many nested parentheses"),
        ("text = 'ab'\n" + "text = text + text\n" * 60, "a text of it is longer than 400,000 characters"),
        ("text = " + "+".join(["'a'"] * 20_000), "recursion"),
        ("#" * 500_000, "it is longer than 400,000 characters"),
    ],
)
def test_source_that_would_take_memory_is_refused(code: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        frames(NamedWords(name="text", relation="hasArea"), code=code)
