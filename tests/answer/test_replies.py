"""Replies as chat models, servers and front ends write them, by kind: what a careful reader would take from each.

everyday.jsonl has what base models, thoughts, corrections and error pages are like, and replies in other languages. A
line is {"kind", "relation", "subject"?, "text", "finish"?, "expected"}; expected is a list of
objects, [] for "there is none", or "unreadable". A relation is one of the editions, or the fields of one in another
language.
"""

import json
from collections.abc import Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from babel import Locale
from babel.lists import format_list
from opened import part
from small import THING, small_relation
from space import SPACE

from lmkbc import EntityType, Relation, Shape
from lmkbc.answer.clean import sifted
from lmkbc.answer.parse import parse
from lmkbc.generate.reply import candidates
from lmkbc.testing import Query, Reply, State

FILES = (Path(__file__).with_name(name) for name in ("replies.jsonl", "everyday.jsonl"))
LINES = [line for file in FILES for line in file.read_text(encoding="utf-8").strip().split("\n")]
ROWS = [json.loads(line) for line in LINES]
KINDS = {kind: list(rows) for kind, rows in groupby(ROWS, lambda row: row["kind"])}


@pytest.mark.parametrize("kind", KINDS)
def test_a_reply_is_read_as_a_careful_reader_reads_it(kind: str) -> None:
    wrong = [(row["text"], row["expected"], read) for row in KINDS[kind] if (read := _read(row)) != _expected(row)]
    assert not wrong


@pytest.mark.parametrize("language", "de fr es it pt nl pl ru tr ar zh ja ko hi he el".split())
def test_a_list_is_read_as_a_language_writes_it(language: str) -> None:
    names = [Locale(language).territories[code] for code in ("CL", "DE", "EC", "EG")]
    row = {"relation": "countryLandBordersCountry", "text": format_list(names, locale=language)}
    assert _read(row) == sorted(names)


@pytest.mark.parametrize("language", "de fr es it pt nl pl ru tr ar zh ja ko hi he el".split())
def test_a_joint_within_a_name_of_a_place_parts_nothing(language: str) -> None:
    for name in (Locale(language).territories[code] for code in ("BA", "AG", "TT", "ST", "KN", "VC", "BO")):
        assert _read({"relation": "countryLandBordersCountry", "text": name}) == [name]


@pytest.mark.parametrize(
    ("statement", "kind", "text", "objects"),
    [
        ("{subject} wurde in {object} geboren.", "Ort", "Sie wurde in Köln geboren.", ["Köln"]),
        ("{subject} wurde in {object} geboren.", "Ort", "Wo wurde Bert geboren?", []),
        ("{subject} liegt an {object}.", "Fluss", "Bonn liegt an Rhein und Sieg.", ["Rhein", "Sieg"]),
        ("{subject} liegt an {object}.", "Fluss", "Die Flüsse sind: Rhein, Sieg", ["Rhein", "Sieg"]),
        ("{subject} parle {object}.", "langue", "Elle parle français et anglais.", ["français", "anglais"]),
        ("{subject} trabaja para {object}.", "empresa", "Bonn trabaja para Repsol.", ["Repsol"]),
        ("{subject} trabaja para {object}.", "empresa", "¿Para quién trabaja Bonn? Repsol", ["Repsol"]),
    ],
)
def test_a_relation_in_another_language_states_its_objects(
    statement: str, kind: str, text: str, objects: list[str]
) -> None:
    relation = small_relation(
        object_type=EntityType(kind),
        definition="x",
        clozes=(statement.replace("{object}", "{mask}"),),
        question="{subject}?",
        triple=statement.split("}")[1].split("{", maxsplit=1)[0].strip(),
        statement=statement,
    )
    assert [*parse(text, relation, "Bonn").objects] == objects


MAKER = small_relation(
    subject_type=EntityType("Produkt"),
    object_type=EntityType("Firma"),
    definition="Alle Firmen, die das Produkt herstellen; nichts, wenn es keine gibt.",
    clozes=("{subject} wird von {mask} hergestellt.",),
    question="Wer stellt {subject} her?",
    triple="wird hergestellt von",
    statement="{subject} wird von {object} hergestellt.",
)


@pytest.mark.parametrize(
    ("text", "objects"),
    [
        ("Bolt, Nut und die Weber AG", ["Bolt", "Nut", "Weber AG"]),
        ("Bolt, aber nicht Nut", ["Bolt"]),
        ("nicht Nut, sondern Bolt", ["Bolt"]),
        ("Die Bolt AG und die Nut AG", ["Bolt AG", "Nut AG"]),
        ("Radler wird von der Bolt AG und der Nut AG hergestellt.", ["Bolt AG", "Nut AG"]),
        ("Radler wird sowohl von Bolt als auch von Nut hergestellt.", ["Bolt", "Nut"]),
        ("Bolt AG stellt Radler her.", ["Bolt AG"]),  # as the question goes
        ("Es war die Bolt AG.", ["Bolt AG"]),
        ("Der Hersteller des Radlers ist Max Bolt.", ["Max Bolt"]),
        ("Das Rad wurde von Max Bolt hergestellt.", ["Max Bolt"]),
        ("Das Rad stammt von Max Bolt.", ["Max Bolt"]),
        ("Radler ist ein Rad von Max Bolt.", ["Max Bolt"]),
        ("Hergestellt von Max Bolt", ["Max Bolt"]),
        ("Der Meister von Flémalle", ["Der Meister von Flémalle"]),
        ("unbekannter Meister", []),
    ],
)
def test_little_words_of_a_definition_state_nothing(text: str, objects: list[str]) -> None:
    assert [*sifted(parse(text, MAKER, "Radler").objects, MAKER, "Radler")[0]] == objects


@pytest.mark.parametrize(
    ("noun", "text", "objects"),
    [
        ("Eigentümer", "Schloss Ost gehört der Stadt Ulm.", ["Stadt Ulm"]),
        ("Eigentümer", "Es gehört der Stiftung Burgen und Seen.", ["Stiftung Burgen und Seen"]),
        ("Eigentümer", "Haus Thurn und Taxis", ["Haus Thurn und Taxis"]),
        (
            "Eigentümer",
            "Früher war die Stadt Ulm Betreiber, heute ist es das Land Hessen.",
            ["Stadt Ulm", "Land Hessen"],
        ),
        ("Eigentümer", "Der Eigentümer ist nicht bekannt.", []),
        ("Lied", "Der Himmel gehört der Stadt Ulm", ["Der Himmel gehört der Stadt Ulm"]),
    ],
)
def test_an_and_may_be_in_names_that_are_no_titles(noun: str, text: str, objects: list[str]) -> None:
    relation = small_relation(
        subject_type=EntityType("Schloss"),
        object_type=EntityType(noun),
        question="Wem gehört {subject}?",
        triple="gehört",
        clozes=("{subject} gehört {mask}.",),
        statement="{subject} gehört {object}.",
        shape=Shape(separators=(";", "\n"), conjunction=False),
    )
    assert [*sifted(parse(text, relation, "Schloss Ost").objects, relation, "Schloss Ost")[0]] == objects


def _read(row: Mapping[str, Any]) -> list[str] | str:
    relation = _relation(row)
    query = Query(row.get("subject", "Some Subject"), relation.name)
    found = candidates(query, relation, part("prompt"), [Reply(row["text"], row.get("finish", "stop"))], "m")
    if found.draws == (State.ABSTAINED,):
        return []
    return sorted(one.text for one in found.candidates) if found.draws[0].has_objects else "unreadable"


def _relation(row: Mapping[str, Any]) -> Relation:
    """Return the relation of a row: one of the editions, or one of the sentences and types that the row gives."""
    if isinstance(row["relation"], str):
        return SPACE.relations[row["relation"]]
    given = dict(row["relation"])
    types: dict[str, Any] = {side: EntityType(given.pop(side)) for side in ("subject_type", "object_type")}
    shape = Shape(conjunction=True) if given.get("kind") == "strings" else THING.shape
    cloze = given["statement"].replace("{object}", "{mask}")
    return small_relation(**{"definition": "x"} | given, **types, clozes=(cloze,), shape=shape)


def _expected(row: Mapping[str, Any]) -> list[str] | str:
    """Return the expected objects, by the names that their relation prefers."""
    if isinstance(row["expected"], str):
        return row["expected"]
    relation = _relation(row)
    return sorted((*sifted([name], relation, "")[0], name)[0] for name in row["expected"])


@pytest.mark.parametrize(
    ("kind", "text", "objects"),
    [
        ("strings", "Das weiß ich leider nicht.", State.ABSTAINED),
        ("strings", "Leider keine Angabe", State.ABSTAINED),
        ("strings", "Es gibt keine Farben.", State.ABSTAINED),
        ("strings", "Das kann ich nicht sagen", State.UNPARSED),
        ("strings", "Kein Mensch ist illegal", ("Kein Mensch ist illegal",)),
        ("strings", "rot, gelb, blau.", ("rot", "gelb", "blau")),
        ("strings", "A1, Acme Inc.", ("A1", "Acme Inc.")),
        ("strings", "Die Farben sind rot, gelb und blau.", ("rot", "gelb", "blau")),
        ("strings", "Verfügbare Farben: rot, blau", ("rot", "blau")),
        ("entity", "Das kann ich nicht sagen", State.UNPARSED),
        ("entity", "Dat kan ik niet zeggen.", State.UNPARSED),
        ("entity", "Bosch, Siemens und Krups, sowie Braun", ("Bosch", "Siemens", "Krups", "Braun")),
        ("entity", "Müller und Söhne, Bosch", ("Müller und Söhne", "Bosch")),
        ("entity", "Müller und Söhne; Bosch", ("Müller und Söhne", "Bosch")),
    ],
)
def test_a_list_is_parted_without_a_verdict_a_lead_or_a_translated_joint(
    kind: str, text: str, objects: State | tuple[str, ...]
) -> None:
    relation = small_relation(
        subject_type=EntityType("Ding"),
        object_type=EntityType("Farbe"),
        kind=kind,
        definition="Die Farben.",
        clozes=("Die Farben von {subject} sind {mask}.",),
        question="Welche Farben hat {subject}?",
        triple="hat die Farben",
        statement="Die Farben von {subject} sind {object}.",
        shape=Shape(separators=(",", ";", "\n"), conjunction=True),
    )
    read = parse(text, relation, "X")
    assert (read.objects or read.state) == objects


MAKERS = """de | {} wurde von {mask} gemalt. | Wer hat {} gemalt? | Maler
Eva Bolt zugeschrieben|wird Eva Bolt zugeschrieben|Das Gemälde wird Eva Bolt zugeschrieben.|Eva Bolt (zugeschrieben)
wahrscheinlich von Eva Bolt|Ich bin mir nicht sicher, aber vermutlich Eva Bolt.|Hier ist die Antwort: Eva Bolt
Malerin: Eva Bolt|Künstlerin: Eva Bolt|Urheber: Eva Bolt|Eva Bolt, eine norddeutsche Malerin
Eva Bolt, Malerin aus Bremen|Eva Bolt (1880–1945), deutsche Malerin|Das Gemälde „X Y“ hat Eva Bolt gemalt.
Eva Bolt malte es.|Eva Bolt hat das Bild gemalt.|Das Bild malte Eva Bolt.|Das Gemälde wurde 1905 von Eva Bolt gemalt.
Eva Bolt schuf das Werk.|Es wurde von der Malerin Eva Bolt geschaffen.|Gemalt von Eva Bolt.|Die Malerin ist Eva Bolt.
en | {} was painted by {mask}. | Who painted {}? | person
Eva Bolt painted it.|Eva Bolt painted the picture in 1905.|It was painted by the artist Eva Bolt.|Eva Bolt created it.
It is by Eva Bolt.|The painting was made by Eva Bolt.|It was painted in 1905 by Eva Bolt.
It was painted by Eva Bolt and exhibited in 1906.|attributed to Eva Bolt|The painting is attributed to Eva Bolt.
probably by Eva Bolt|I am not sure, but probably Eva Bolt.|Painter: Eva Bolt|Eva Bolt, a German painter
The painting "X Y" was painted by Eva Bolt.
en | {mask} wrote {}. | Who wrote {}? | author
Eva Bolt wrote it.|It was written by Eva Bolt.|Eva Bolt wrote the novel.|Eva Bolt is the author.
fr | {} a été peint par {mask}. | Qui a peint {} ? | personne
Eva Bolt l'a peint.|Eva Bolt a peint ce tableau.|C'est Eva Bolt qui l'a peint.|Peint par Eva Bolt.
Le tableau a été peint en 1905 par Eva Bolt.|attribué à Eva Bolt|probablement de Eva Bolt|Peintre : Eva Bolt
Eva Bolt, une peintre allemande|Je ne suis pas sûr, mais probablement Eva Bolt.
es | {} fue pintado por {mask}. | ¿Quién pintó {}? | persona
Eva Bolt lo pintó.|Lo pintó Eva Bolt.|Eva Bolt pintó el cuadro en 1905.|El cuadro fue pintado por Eva Bolt.
El cuadro se atribuye a Eva Bolt.|atribuido a Eva Bolt|Pintora: Eva Bolt|Eva Bolt, pintora alemana
No estoy seguro, pero probablemente Eva Bolt.
it | {} è stato dipinto da {mask}. | Chi ha dipinto {}? | persona
Eva Bolt lo dipinse.|L'ha dipinto Eva Bolt.|Eva Bolt ha dipinto il quadro.|Dipinto da Eva Bolt.
pt | {} foi pintado por {mask}. | Quem pintou {}? | pessoa
Eva Bolt pintou-o.|Eva Bolt pintou o quadro.|Foi pintado por Eva Bolt.
nl | {} is geschilderd door {mask}. | Wie schilderde {}? | persoon
Eva Bolt schilderde het.|Het werd door Eva Bolt geschilderd.|Eva Bolt heeft het geschilderd.
pl | {} został namalowany przez {mask}. | Kto namalował {}? | osoba
Eva Bolt namalowała go.|Namalowała go Eva Bolt.|Obraz został namalowany przez Eva Bolt."""


def test_a_sentence_says_who_made_something() -> None:
    wrong = []
    for line in MAKERS.replace("{}", "{subject}").split("\n"):
        if " | " in line:
            _, cloze, question, noun = line.split(" | ")
            asked = small_relation(
                object_type=EntityType(noun),
                clozes=(cloze,),
                question=question,
                triple="x",
                statement=cloze.replace("mask", "object"),
            )
        else:
            read = {text: sifted(parse(text, asked, "X Y").objects, asked, "X Y")[0] for text in line.split("|")}
            wrong += [(text, objects) for text, objects in read.items() if objects != ("Eva Bolt",)]
    assert not wrong


UNKNOWN_MAKERS = """Es ist nicht bekannt, wer das Gemälde gemalt hat.|Es ist unklar, wer das Bild gemalt hat.
Das lässt sich nicht eindeutig sagen.|Wer das Bild gemalt hat, ist nicht bekannt.|Tut mir leid, das weiß ich nicht.
It is unclear who painted the picture.|This cannot be said with certainty.|On ne sait pas qui a peint ce tableau.
Se desconoce quién lo pintó.|Non si sa chi l'abbia dipinto.|Não é possível determinar.|Nie wiadomo, kto namalował obraz.
Het is niet bekend wie het schilderij heeft gemaakt.|Неизвестно, кто написал картину.|Lo siento, no lo sé."""


@pytest.mark.parametrize("text", UNKNOWN_MAKERS.replace("\n", "|").split("|"))
def test_a_maker_that_is_not_known_is_no_object(text: str) -> None:
    relation = small_relation(object_type=EntityType("person", "Q5"), question="Wer hat {subject} gemalt?")
    assert parse(text, relation, "X").state is State.ABSTAINED


def test_a_title_that_there_is_not_is_no_object() -> None:
    asked = small_relation(
        kind="text", object_type=EntityType("Titel"), question="Wie ist der englische Titel von {subject}?"
    )
    for text in ("Einen englischen Titel gibt es nicht.", "Das Gemälde hat keinen englischen Titel."):
        assert parse(text, asked, "X").state is State.ABSTAINED


@pytest.mark.parametrize("text", ["Hans Maler, Eva Bolt", "Hans Maler; Eva Bolt", "Hans Maler und Eva Bolt"])
def test_a_family_name_that_is_an_occupation_stays(text: str) -> None:
    asked = small_relation(object_type=EntityType("Maler", "Q5"), question="Wer hat {subject} gemalt?")
    assert parse(text, asked, "X").objects == ("Hans Maler", "Eva Bolt")


@pytest.mark.parametrize("text", ["Meister von Meßkirch", "Hans von Aachen", "Made in Heights", "By Chance", "Das Duo"])
def test_a_name_with_a_word_of_making_stays_whole(text: str) -> None:
    relation = small_relation(object_type=EntityType("artist"), question="Who played {subject}?")
    assert parse(text, relation, "X").objects == (text,)
