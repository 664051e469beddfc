"""Sentences of a relation: its question, statement and clozes, from a property's label and the kind of its values.

A few common properties have irregular wordings, in wordings.toml. All others follow from the form of the label.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import msgspec

from lmkbc.domain.phrases import (
    PAST,
    Done,
    Noun,
    Predicate,
    article,
    clean,
    is_participle,
    is_plural,
    is_uncounted,
    phrase,
    plural,
)

_COUNT = re.compile(r"(?:total )?(?:number|count) of (?:the )?(.+)")
_FIRST = re.compile(r"(first|last) (\w+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Objects:
    """Words of a question that say what it asks for.

    noun: of the objects, "" if it is not known or says nothing, such as "entity".
    person: whether they are persons, or groups of them. many: whether a subject may have several.
    number: whether they are numbers. unit: the numbers' unit in words, as in "square kilometres"; "" for none.
    time: whether they are dates.
    """

    noun: str = ""
    person: bool = False
    many: bool = True
    number: bool = False
    unit: str = ""
    time: bool = False

    @property
    def within(self) -> str:
        """Return "in" and the unit; "" without one."""
        return f" in {self.unit}" if self.unit else ""


class Wording(msgspec.Struct, frozen=True, kw_only=True):
    """The sentences of a relation, as templates: see `Relation`."""

    question: str
    statement: str
    triple: str
    clozes: tuple[str, ...] = ()


def wording(property_: str, label: str, objects: Objects) -> Wording:
    """Return the sentences for a property; its statement is the first cloze. label: in English, as Wikidata has it."""
    made = _irregular().get(property_) or _worded(clean(label), objects)
    first = made.statement.replace("{object}", "{mask}")
    return msgspec.structs.replace(made, clozes=tuple(dict.fromkeys((first, *made.clozes))))


@cache
def _irregular() -> dict[str, Wording]:
    """Return the listed wordings, by property."""
    table = files("lmkbc.domain").joinpath("wordings.toml").read_bytes()
    return msgspec.toml.decode(table, type=dict[str, Wording])


def _worded(label: str, objects: Objects) -> Wording:
    if objects.number and (counted := _COUNT.fullmatch(label)):
        return _counted(counted[1])
    if objects.number and not objects.unit and is_plural(label):
        return _counted(label)
    if (first := _FIRST.fullmatch(label)) and is_participle(first[2]):
        return _first(first[1], first[2])
    form = phrase(label)
    if objects.number or objects.time:
        form = Noun(label)
    if isinstance(form, Predicate):
        return _predicate(form, objects)
    return _done(form, objects) if isinstance(form, Done) else _noun(form.text, objects)


def _noun(noun: str, objects: Objects) -> Wording:
    """Word "author", as in "Who are the authors of X?"."""
    several = objects.many and not (objects.number or objects.time or is_uncounted(noun))
    many = several and not is_plural(noun)
    verb = "are" if several or is_plural(noun) else "is"
    asked = plural(noun) if many else noun
    unit = f" {objects.unit}" if objects.unit else ""
    statement = f"The {noun} of {{subject}} {'are' if is_plural(noun) else 'is'} {{object}}{unit}."
    clozes: tuple[str, ...] = (f"{{subject}} has the {noun} {{mask}}{unit}.",)
    if not (objects.number or objects.time):
        named = article(noun) if many else f"the {noun}"
        clozes = (f"{{mask}} is {named} of {{subject}}.", *clozes)
        if many:
            clozes = (statement.replace("{object}", "{mask}"), *clozes)
            statement = f"{{object}} is {named} of {{subject}}."
    return Wording(
        question=f"{'Who' if objects.person else 'What'} {verb} the {asked} of {{subject}}{objects.within}?",
        statement=statement,
        triple=f"has the {noun}",
        clozes=clozes,
    )


def _counted(things: str) -> Wording:
    """Word "number of children", as in "How many children does X have?"."""
    return Wording(
        question=f"How many {things} does {{subject}} have?",
        statement=f"{{subject}} has {{object}} {things}.",
        triple=f"has the number of {things}",
        clozes=(f"The number of {things} of {{subject}} is {{mask}}.",),
    )


def _first(first: str, verb: str) -> Wording:
    """Word "first appeared" and "last updated", as in "When did X first appear?" and "When was X last updated?"."""
    auxiliary, asked, stated = ("did", PAST[verb], "") if verb in PAST else ("was", verb, "was ")
    return Wording(
        question=f"When {auxiliary} {{subject}} {first} {asked}?",
        statement=f"{{subject}} {stated}{first} {verb} in {{object}}.",
        triple=f"{stated}{first} {verb} in",
    )


def _done(form: Done, objects: Objects) -> Wording:
    """Word "award received", as in "Which awards were received by X?"."""
    several = objects.many or is_plural(form.noun)
    return Wording(
        question=f"Which {plural(form.noun) if several else form.noun} {'were' if several else 'was'} "
        f"{form.participle} by {{subject}}?",
        statement=f"{{subject}} {form.past} the {form.noun} {{object}}.",
        triple=f"{form.past} the {form.noun}",
        clozes=(f"The {form.noun} {form.participle} by {{subject}} is {{mask}}.",),
    )


def _predicate(form: Predicate, objects: Objects) -> Wording:
    """Word "influenced by" and "located in time zone", as in "Which time zone is X located in?"."""
    noun = form.tail or objects.noun
    if form.tail or (noun and not objects.person):
        asked = f"Which {plural(noun) if objects.many else noun}"
    elif objects.person:
        asked = "Who"
    else:
        asked = "Who or what" if form.rest.endswith((" by", " after")) else "What"
    the = f" the {form.tail}" if form.tail else ""
    clozes: tuple[str, ...] = ()
    if form.verb == "has":
        clozes = (f"{{mask}} is {article(noun)} of {{subject}}.",)
    elif noun and not (objects.person or is_plural(noun)):
        clozes = (f"{{subject}} {form.verb} {{mask}}, which is {article(noun)}.",)
    return Wording(
        question=f"{asked} {form.auxiliary} {{subject}} {form.rest}?",
        statement=f"{{subject}} {form.verb}{the} {{object}}.",
        triple=f"{form.verb}{the}",
        clozes=clozes,
    )
