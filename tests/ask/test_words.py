"""Named lines of Python source become frames, and its code is never run."""

from typing import Any

import pytest

from lmkbc import InputError
from lmkbc.recipe import RecipeFile
from lmkbc.settings import checked
from lmkbc.systems.authors import converted

SOURCE = r"""
raise SystemExit("this is run")
TABLE = {
    "hasArea": "How big is " + "it?",  # a comment
}

def ask(who, relation, gap):
    text = f"{who} is as large as {gap}."
    more = "How large? {} is {size}.".format(who, size=gap)
    shown = f"{gap:>9}"
    return (
        "Be brief. "
        f"Like this: {joined(rows)}"
    )

def lines(who, rows):
    lines = ["Sizes of islands.\n"]
    lines.append(
        f"{row['name']} is an island. It has {size(row)} km2.\n")
    lines.append(f"{who} is an island.")

class Model:
    def __init__(self):
        query += " Say a number."
        steps = [{"": [("%s is %s.", True, 1.0)]}, {"yes": None}]
        named = {
            "isle": f"the isle of {who}",
            "land": f"{who} land",
        }
"""
SLOTS = {"who": "{subject}", "gap": "{mask}", "row['name']": "{subject}", "size(row)": "{answer}"}


def frames_of(*words: dict[str, Any], **more: Any) -> Any:
    """The frames of named lines of the source, as a recipe's table `source` gives them."""
    file = {"format": "python", "path": "https://example.org/ask.py", "words": words, **more}
    source = {"licence": "MIT", "credit": "Ann", "files": [file]}
    recipe = checked(RecipeFile, {"description": "x", "generate": [{}], "select": {}, "source": source}, "recipe")
    assert recipe.source
    return converted(recipe.source, [SOURCE.encode()]).frames


def frame(name: str, *lines: tuple[int, int], slots: Any = SLOTS, **given: Any) -> dict[str, Any]:
    words = {"name": name, "lines": lines, "relation": "hasArea", **given}
    return frames_of(words, slots=slots)["hasArea"]


@pytest.mark.parametrize(
    ("name", "lines", "given", "made"),
    [
        ("TABLE", [(1, 1)], {}, {"block": "How big is it?"}),
        (
            "def ask",
            [(1, 1), (2, 2)],
            {"setting": "clozes"},
            {"clozes": ["{subject} is as large as {mask}.", "How large? {subject} is {mask}."]},
        ),
        ("query +=", [(0, 0)], {"slots": {"query": "{asked}"}}, {"block": "{{ asked }} Say a number."}),
        (
            "def ask",
            [(4, 7)],
            {"setting": "text", "slots": {"joined(rows)": "{examples}"}},
            {"task": "Be brief. Like this: ", "separator": "", "ask": ""},
        ),
        (
            "def lines",
            [(1, 1), (2, 3), (4, 4)],
            {"setting": "lines", "frame": {"null": "no"}},
            {
                "task": "Sizes of islands.",
                "block": "{{ subject }} is an island.",
                "answer": "It has {{ answer }} km2.",
                "separator": "\n\n",
                "null": "no",
            },
        ),
        (
            "steps =",
            [(0, 0)],
            {"slots": {"%s": ("{subject}", "{mask}")}, "setting": "precondition"},
            {"precondition": "{subject} is {mask}."},
        ),
        (
            "named = {",
            [(0, 3)],
            {"setting": "forms"},
            {"forms": {"isle": "the isle of {subject}", "land": "{subject} land"}},
        ),
    ],
)
def test_lines_are_an_expression_and_what_the_code_fills_is_a_slot(
    name: str, lines: list[tuple[int, int]], given: dict[str, Any], made: dict[str, Any]
) -> None:
    assert frame(name, *lines, **given) == made


def test_words_for_all_relations_and_a_phrase_stand_in_the_words_of_one() -> None:
    words = (
        {"name": "def ask", "lines": [[4, 7]], "relation": "*", "slots": {"joined(rows)": "{phrase}"}},
        {"name": "TABLE", "lines": [[1, 1]], "relation": "hasArea", "setting": "{phrase}"},
    )
    made = frames_of(*words)
    assert made["hasArea"] == {"block": "Be brief. Like this: How big is it?"}


@pytest.mark.parametrize(
    ("name", "lines", "said"),
    [
        ("def told", (1, 1), "no line has 'def told'"),
        ("def ask", (0, 0), "was never closed|expected|invalid syntax"),
        ("raise", (0, 0), "is no expression"),
        ("def ask", (3, 3), "slots does not say what stands for"),
        ("def ask", (4, 7), r"slots does not say what stands for 'joined\(rows\)'"),
    ],
)
def test_lines_that_hold_no_text_are_refused(name: str, lines: tuple[int, int], said: str) -> None:
    with pytest.raises(InputError, match=f"ask.py is not as its format 'python' has it: .*({said})"):
        frame(name, lines)


def test_a_setting_takes_as_many_expressions_as_it_has_parts() -> None:
    with pytest.raises(InputError, match="'def ask' has 2 expressions, and not 1"):
        frame("def ask", (1, 1), (2, 2))
