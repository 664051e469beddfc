"""Modules of relations: a property of Wikidata, or a name and a kind, becomes a file that a person can sign and edit.

All modules of a call are made and checked before the first one is written. A file that is there is never replaced.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import MISSING, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

from lmkbc.domain import properties
from lmkbc.domain.phrases import clean, plural
from lmkbc.domain.properties import INVERSE, PROPERTY, WikidataEntity
from lmkbc.domain.sentences import Objects, wording
from lmkbc.errors import InputError
from lmkbc.files.atomic import write_bytes
from lmkbc.files.trusted import remember
from lmkbc.files.writable import check_new
from lmkbc.kinds.kind import Kind
from lmkbc.kinds.units import unit_of, unit_of_item
from lmkbc.link.wikibase import Term
from lmkbc.link.wikidata import Client
from lmkbc.names import as_qid, folded_key
from lmkbc.relation import ANYTHING, EntityType, Relation, kind_named

WIDTH = 120
ABBREVIATIONS = frozenset(
    "etc cf approx ca resp esp incl excl vs viz al nr vol st dr prof mr mrs ms jr sr inc ltd co corp dept fig bzw usw "
    "vgl evtl ggf inkl ex env".split()
)
"""Words that a point shortens, in descriptions of properties."""
ABSTRACT = frozenset({ANYTHING.qid, "Q488383", "Q4406616", "Q223557", "Q16889133", "Q7184903", "Q1190554"})
"""Classes whose noun says nothing in a question: entity, object, concrete object, physical object, occurrence ..."""
NOUNS = {"Q2221906": "place", "Q5": "person"}
"""Nouns of classes whose label is a technical term: geographic location, human."""
PERSONS = frozenset({"Q5", "Q215627", "Q95074"})
"""Human, person and fictional character."""
UNITS = ("Q712226", "Q11573", "Q11570", "Q7727", "Q25267", "Q11229", "Q4917")
"""Units that a relation has if its property allows them: km2, metre, kilogram, minute, degree Celsius, percent, USD."""


def new_relations(
    properties_: Sequence[str],
    folder: Path,
    *,
    client: Client | None = None,
    dump: Path | None = None,
    subject_class: str = "",
    taken: Collection[str] = (),
) -> list[Path]:
    """Write a module for each property of Wikidata into a folder, and return their paths.

    client, dump: where properties are read; with neither, skeletons are written that say what to fill in.
    subject_class: QID of the class of subjects, for all properties; by default the classes that a property allows.
    taken: all names of the workspace's own relations. InputError for a property that does not exist, was merged, is
    named twice or cannot be asked. InputError too for two relations of one name, and for a file that is there or cannot
    be written.
    """
    ids = properties.check_ids(properties_)
    lookup = properties.of_client(client) if client else properties.of_dump(dump) if dump else None
    if lookup is None:
        return _write(
            (_skeleton(name, f"value of {name}", kind_named("entity"), name.lower()) for name in ids), folder, taken
        )
    if subject_class and as_qid(subject_class) != subject_class:
        raise InputError(f"{subject_class!r} is no class of Wikidata: name its QID, as in Q9143")
    entities = properties.read(ids, lookup)
    types = properties.of_data_types()
    kinds = [types[entity.datatype] for entity in entities]
    each = [*zip(entities, kinds, strict=True)]
    needed = [qid for entity, kind in each for qid in (*entity.subjects, *entity.values, *_unit(entity, kind))]
    named = lookup([*dict.fromkeys(filter(None, [subject_class, *needed]))])
    labels = {qid: clean(item.label) for qid, item in named.items() if item.label}
    if subject_class and subject_class not in labels:
        raise InputError(f"Wikidata has no class {subject_class} with an English label: name its QID, as in Q9143")
    relations = [_relation(entity, kind, labels, subject_class) for entity, kind in each]
    return _write(zip(_paired(relations, entities), map(_about, entities), strict=True), folder, taken)


def own_relations(kinds: Mapping[str, str], folder: Path, *, taken: Collection[str] = ()) -> list[Path]:
    """Write a module for each relation of one's own, by name and kind, and return their paths. Errors as above."""
    words = {name: re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[-_]", " ", name).lower() for name in kinds}
    skeletons = (_skeleton(name, words[name], kind_named(kind), name) for name, kind in kinds.items())
    return _write(skeletons, folder, taken)


def _skeleton(name: str, label: str, kind: Kind, own_name: str) -> tuple[Relation, str]:
    """Return a property, or a relation of one's own, of which only a label and its kind are known; and a docstring."""
    entity = WikidataEntity(id="P1", datatype=kind.data_types[0], labels={"en": Term(label)})
    relation = replace(_relation(entity, kind, {}, ""), name=own_name, names=(name,), property=name)
    fields = "For sentences in another language, name it, as in language='de'." + (
        " 'A & B' is one object with shape=Shape(conjunction=False)." * kind.is_entity
    )
    return relation, f"A skeleton: fill in what {label!r} means, its types{kind.hint} and its sentences. {fields}"


def _unit(entity: WikidataEntity, kind: Kind) -> tuple[str, ...]:
    """Return the item of the unit of a property's numbers: a usual one, else the first that is known, if any."""
    allowed = entity.constrained(properties.UNITS, properties.ITEM) if kind.has_unit else ()
    known = [qid for qid in (*UNITS, *allowed) if qid in allowed and unit_of_item(qid)]
    return tuple([*known, *allowed][:1])


def _relation(entity: WikidataEntity, kind: Kind, labels: Mapping[str, str], subject_class: str) -> Relation:
    """Return the relation of a property. labels: QID -> label of classes and units."""
    label = clean(entity.label)
    is_entity = kind.is_entity
    symmetric = is_entity and any(entity.constraints(properties.SYMMETRIC))
    values = entity.values if is_entity else ()
    subjects = (subject_class,) if subject_class else entity.subjects
    subject_type = _type(subjects, labels)
    object_type = kind.type if not is_entity else subject_type if symmetric else _type(values, labels)
    functional = any(entity.constraints(*properties.SINGLE_VALUE))
    unit_id = next(iter(_unit(entity, kind)), None)
    unit = labels.get(unit_id or "", "")
    words = unit and plural(unit)
    telling = [qid for qid in values if qid in labels and qid not in ABSTRACT]
    objects = Objects(
        noun=_type(telling, labels).noun if telling and len(values) < 3 else "",
        person=not PERSONS.isdisjoint(values),
        many=not functional,
        number=kind.is_numeric,
        unit=words,
        time=kind.asks_when,
        value=kind.has_values,
    )
    sentences = wording(entity.id, label, objects)
    try:
        return Relation(
            name=re.sub("[^a-z0-9]+", "-", folded_key(label)).strip("-") or entity.id.lower(),
            names=(entity.id,),
            property=entity.id,
            subject_type=subject_type,
            object_type=object_type,
            kind=kind.name,
            may_be_empty=True,
            definition=_definition(entity, sentences.question, objects, kind),
            clozes=sentences.clozes,
            question=sentences.question,
            triple=sentences.triple,
            statement=sentences.statement,
            unit=_spelling(unit_id, words),
            unit_id=unit_id if words else None,
            symmetric=symmetric,
            functional=functional and not kind.one_object,
            distinct_values=is_entity and not symmetric and any(entity.constraints(properties.DISTINCT)),
            shape=replace(kind.shape, integer=any(entity.constraints(properties.INTEGER)) and kind.has_values),
        )
    except ValueError as error:
        raise InputError(f"{entity.id} ({label}) cannot be worded: {error}; write its relation by hand") from None


def _type(classes: Sequence[str], labels: Mapping[str, str]) -> EntityType:
    """Return the type of some classes: the noun of the first that has a label."""
    named = [qid for qid in classes if qid in labels]
    return EntityType(NOUNS.get(named[0], labels[named[0]]), named[0], tuple(named[1:])) if named else ANYTHING


def _spelling(qid: str | None, words: str) -> str | None:
    """Return how a relation spells its unit so that replies can be converted: in words, or as a currency's code."""
    code = unit_of_item(qid)
    return (code if code and unit_of(words) != code == unit_of(code) else words) or None


def _definition(entity: WikidataEntity, question: str, objects: Objects, kind: Kind) -> str:
    """Return what counts: the property's description without notes for editors, else its question, and the form."""
    text = re.sub(r"\s*[(\[][^()\[\]]*(?:\b[PQ]\d+|\buse\b)[^()\[\]]*[)\]]", "", entity.description)
    text = clean(re.split(r";|, use \b", _first_sentence(text))[0]).rstrip(" .,")
    text = f"The answer to {question.format(subject='SUBJECT')!r}" if text == "value" else text[:1].upper() + text[1:]
    if kind.form:
        return f"{text}{kind.form.format(within=objects.within)}"
    return f"{text}. {'Every one counts; nothing' if objects.many else 'Nothing'} when there is none."


def _first_sentence(text: str) -> str:
    """Return a text up to the end of its first sentence. A point after an initial or an abbreviation ends none."""
    for found in re.finditer(r"(\S+?)\.\s", text):
        word = found[1].lstrip("([").casefold()
        if not (len(word) == 1 or "." in word or word in ABBREVIATIONS):
            return text[: found.end()]
    return text


def _about(entity: WikidataEntity) -> str:
    """Return the docstring of a property's module: its label and id, its inverse, and its other names."""
    inverse = entity.constrained(INVERSE, PROPERTY)
    others = ", ".join(map(clean, entity.names[:8]))
    return " ".join(
        [
            f"{clean(entity.label)}: property {entity.id} of Wikidata.",
            *([f"Its inverse is {', '.join(inverse)}."] if inverse else []),
            *([f"Other names: {others}."] if others else []),
        ]
    )


def _paired(relations: Sequence[Relation], entities: Sequence[WikidataEntity]) -> list[Relation]:
    """Name the inverses that are among the relations. The types of both sides must mirror each other."""
    by_id = {relation.property: relation for relation in relations}
    return [
        replace(relation, inverse_of=_inverse(relation, map(by_id.get, entity.constrained(INVERSE, PROPERTY))))
        for relation, entity in zip(relations, entities, strict=True)
    ]


def _inverse(relation: Relation, others: Iterable[Relation | None]) -> str:
    """Return the name of the other relation that mirrors a relation; "" for none."""
    sides = relation.kind, relation.object_type.qid, relation.subject_type.qid
    names = [
        other.name
        for other in others
        if other
        and not (relation.symmetric or other.symmetric)
        and sides == ("entity", other.subject_type.qid, other.object_type.qid)
        and other.has_entities()
    ]
    return "".join(names[-1:])


def _write(modules: Iterable[tuple[Relation, str]], folder: Path, taken: Collection[str]) -> list[Path]:
    """Write the modules of relations with their docstrings, or none of them."""
    contents, files = dict[Path, bytes](), dict[str, Path]()
    names = {*taken}
    for relation, docstring in modules:
        if twice := {*relation.spellings()} & names:
            raise InputError(
                f"{relation.property} would be the second relation named {min(twice)!r}: rename the other one in its "
                "module, or leave one of the two out"
            )
        names.add(relation.name)
        path = folder / f"{relation.name.replace('-', '_')}.py"
        if same := [name for name, other in files.items() if other.name.casefold() == path.name.casefold()]:
            raise InputError(f"{same[0]} and {relation.name} would both be the module {path.name}: rename one")
        files[relation.name] = path
        check_new(path)
        contents[path] = source(relation, docstring).encode()
    with ExitStack() as undo:
        for path, content in contents.items():
            write_bytes(path, content, new=True)
            undo.callback(path.unlink, missing_ok=True)
        undo.pop_all()
    remember(contents)
    return [*contents]


def source(relation: Relation, docstring: str) -> str:
    """Return the text of a module, in the layout that ruff gives it."""
    text = clean(docstring)
    first = _first_sentence(text).rstrip()
    rest = text[len(first) :].lstrip()
    more = "\n".join(["", "", *textwrap.wrap(rest, WIDTH), ""]) if rest else ""
    body = _code(relation, "RELATION = ")
    used = sorted(name for name in ("EntityType", "Relation", "Shape") if f"{name}(" in body)
    return f'"""{first.removesuffix(".")}.{more}"""\n\nfrom lmkbc import {", ".join(used)}\n\n{body}\n'


def _code(value: Any, before: str = "", indent: str = "") -> str:
    """Return a text, a tuple or a dataclass as Python code, on as many lines as it needs.

    before: what stands before it on its first line, such as the name of a parameter.
    """
    start, inner = f"{indent}{before}", f"{indent}    "
    if not (isinstance(value, tuple) or is_dataclass(value)):
        flat = start + _literal(value)
        pieces = textwrap.wrap(str(value), WIDTH - len(start) - 8, drop_whitespace=False)
        return flat if len(flat) < WIDTH else start + f"\n{indent}".join(map(_literal, pieces))
    name = "" if isinstance(value, tuple) else type(value).__name__
    parts = [("", part) for part in value] if isinstance(value, tuple) else _given(value)
    comma = "," * (len(parts) == 1 and not name)
    flat = f"{start}{name}({', '.join(_code(part, key) for key, part in parts)}{comma})"
    if len(flat) < WIDTH and "\n" not in flat and not isinstance(value, Relation):
        return flat
    return f"{start}{name}(\n{''.join(f'{_code(part, key, inner)},{chr(10)}' for key, part in parts)}{indent})"


def _literal(value: Any) -> str:
    """Return the literal of a text or a number, by `repr`; a text without double quotes stands in double quotes."""
    text = repr(value)
    return f'"{text[1:-1]}"' if text[0] == "'" and '"' not in text else text


def _given(value: Any) -> list[tuple[str, Any]]:
    """Return the fields of a dataclass that do not have their defaults, with their names as parameters."""
    default = {
        field.name: field.default if field.default_factory is MISSING else field.default_factory()
        for field in fields(value)
    }
    keys = [name for name in default if getattr(value, name) != default[name]]
    return [("" if isinstance(value, EntityType) else f"{name}=", getattr(value, name)) for name in keys]
