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

_COUNT = re.compile(r"^(?:total )?(?:number|count) of (?:the )?(?=.)")
_DONE_AT = re.compile(r"(first |last |)(\w+)(?: date)?")
_EVENT = re.compile(r"(?!(?:.+ )?(?:date|time|year|period)$)(?:(?:.+ )?(?:date|time|year) of (?:the )?)?(.+)")
_ALONE = frozenset("website URL webpage homepage".split())
"""Nouns that are asked for in the singular, since a subject has one in all but rare cases."""
_LABELS = {"box office": "box office gross"}
"""Labels that a word is missing from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Objects:
    """Words of a question that say what it asks for.

    noun: of the objects, "" if it is not known or says nothing, such as "entity".
    person: whether they are persons, or groups of them. many: whether a subject may have several.
    number: whether they are numbers. unit: the numbers' unit in words, as in "square kilometres"; "" for none.
    time: whether they are dates. value: whether they are other values than names and texts.
    """

    noun: str = ""
    person: bool = False
    many: bool = True
    number: bool = False
    unit: str = ""
    time: bool = False
    value: bool = False

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
    made = _irregular().get(property_) or _worded(re.sub(r" \(.*?\)", "", clean(label)), objects)
    first = made.statement.replace("{object}", "{mask}")
    return msgspec.structs.replace(made, clozes=tuple(dict.fromkeys((first, *made.clozes))))


@cache
def _irregular() -> dict[str, Wording]:
    """Return the listed wordings, by property."""
    table = files("lmkbc.domain").joinpath("wordings.toml").read_bytes()
    return msgspec.toml.decode(table, type=dict[str, Wording])


def _worded(label: str, objects: Objects) -> Wording:
    label = _LABELS.get(label, label)
    things = _COUNT.sub("", label)
    if objects.number and (things != label or (not objects.unit and is_plural(label))):
        return _counted(things)
    if objects.time and (done := _DONE_AT.fullmatch(label)) and is_participle(done[2]):
        return _done_at(done[1], done[2])
    if objects.time and (event := _EVENT.fullmatch(label)):
        return _event(event[1])
    form = Noun(label) if objects.number or objects.time else phrase(label)
    if isinstance(form, Predicate):
        return _predicate(form, objects)
    return _done(form, objects) if isinstance(form, Done) else _noun(form.text, objects)


def _noun(noun: str, objects: Objects) -> Wording:
    """Word "author", as in "Who are the authors of X?"."""
    values = objects.number or objects.time or objects.value
    several = objects.many and not (values or is_uncounted(noun) or noun.rsplit(maxsplit=1)[-1] in _ALONE)
    named = plural(noun) if several else noun
    verb = "are" if is_plural(noun) else "is"
    unit = f" {objects.unit}" if objects.unit else ""
    statement = f"The {named} of {{subject}} {'include' if several else verb} {{object}}{unit}."
    if several and objects.person and verb == "is":
        statement = f"{{object}} is {article(noun)} of {{subject}}."
    clozes: tuple[str, ...] = (
        f"The {noun} of {{subject}} {verb} {{mask}}{unit}.",
        f"{{subject}} has the {noun} {{mask}}{unit}.",
    )
    if not values:
        clozes = (f"{{mask}} is {'one of ' * several}the {named} of {{subject}}.", *clozes)
    return Wording(
        question=f"{'Who' if objects.person else 'What'} {'are' if several else verb} the {named} of {{subject}}"
        f"{objects.within}?",
        statement=statement,
        triple=f"has the {noun}",
        clozes=clozes,
    )


def _counted(things: str) -> Wording:
    """Word "number of children" and "goals scored", as in "How many children does X have?"."""
    form = phrase(things)
    asked, stated = f"{things} does {{subject}} have", f"has {{mask}} {things}"
    if isinstance(form, Done):
        asked = f"{form.noun} has {{subject}} {form.participle}"
        stated = f"has {form.participle} {{mask}} {form.noun}"
    return Wording(
        question=f"How many {asked}?",
        statement=f"The number of {things} {'by' if isinstance(form, Done) else 'of'} {{subject}} is {{object}}.",
        triple=f"has the number of {things}",
        clozes=(f"{{subject}} {stated}.",),
    )


def _done_at(first: str, verb: str) -> Wording:
    """Word "first appeared" and "discontinued date", as in "When did X first appear?", "When was X discontinued?"."""
    auxiliary, asked, stated = ("did", PAST[verb], "") if verb in PAST else ("was", verb, "was ")
    return Wording(
        question=f"When {auxiliary} {{subject}} {first}{asked}?",
        statement=f"The date when {{subject}} {stated}{first}{verb} is {{object}}.",
        triple=f"{stated}{first}{verb} in",
        clozes=(f"{{subject}} {stated}{first}{verb} in {{mask}}.",),
    )


def _event(event: str) -> Wording:
    """Word "date of official opening" and "first flight", as in "When was the first flight of X?"."""
    return Wording(
        question=f"When was the {event} of {{subject}}?",
        statement=f"The date of the {event} of {{subject}} is {{object}}.",
        triple=f"has the date of the {event}",
    )


def _done(form: Done, objects: Objects) -> Wording:
    """Word "award received", as in "Which awards has X received?"."""
    return Wording(
        question=f"Which {plural(form.noun) if objects.many else form.noun} has {{subject}} {form.participle}?",
        statement=f"{{subject}} {form.past} {{object}}.",
        triple=form.past,
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
    clozes: tuple[str, ...] = ()
    if noun and not (objects.person or is_plural(noun)):
        clozes = (f"{{subject}} {form.verb} {{mask}}, which is {article(noun)}.",)
    return Wording(
        question=f"{asked} {form.auxiliary} {{subject}} {form.rest}?",
        statement=f"{{subject}} {form.verb} {{object}}.",
        triple=form.verb,
        clozes=clozes,
    )
