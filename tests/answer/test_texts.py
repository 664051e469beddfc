"""Texts, identifiers and addresses: as they are written, out of the markup, labels and sentences of a reply."""

from dataclasses import replace

import pytest
from small import small_relation

from lmkbc import Relation, Shape
from lmkbc.answer.clean import sifted
from lmkbc.answer.parse import parse, verbatim
from lmkbc.testing import State


def asking(kind: str, noun: str) -> Relation:
    """A relation for what has a name of its own, such as a code or a motto."""
    sentence = f"The {noun} of {{subject}} is"
    return small_relation(
        noun,
        kind=kind,
        definition=f"Its {noun}.",
        clozes=(f"{sentence} {{mask}}.",),
        question=f"What is the {noun} of {{subject}}?",
        triple=f"has the {noun}",
        statement=f"{sentence} {{object}}.",
    )


RELATIONS = {"code": asking("identifier", "code"), "motto": asking("string", "motto"), "site": asking("url", "site")}


@pytest.mark.parametrize("name", ["code", "motto"])
@pytest.mark.parametrize(
    ("text", "objects"),
    [
        ("Liberté, égalité and fraternité (motto)", ["Liberté, égalité and fraternité (motto)"]),
        ('["A, B", "the C"]', ["A, B", "the C"]),
        ("```\nX-1\n```", ["X-1"]),
        ("007", ["007"]),
        ("X", ["X"]),
        ("none", []),
        ("[]", []),
    ],
)
def test_texts_are_neither_parted_nor_cleaned(name: str, text: str, objects: list[str]) -> None:
    asked = RELATIONS[name]
    read = parse(text, asked, "X")
    assert [*read.objects] == objects
    assert read.state == (State.ANSWERED if objects else State.ABSTAINED)
    assert sifted(objects, asked, "X") == (tuple(objects), ())
    assert not objects or verbatim(text, asked, "X") == read


READ = """
code  | **A1234**                                   | A1234
code  | *A1234*                                     | A1234
code  | `A1234`.                                    | A1234
code  | - A1234                                     | A1234
code  | 1. A1234                                    | A1234
code  | A1234.                                      | A1234
code  | ["**A1234**"]                               | A1234
code  | ID: A1234                                   | A1234
code  | **Code:** A1234                             | A1234
code  | X: A1234                                    | A1234
code  | **X**: A1234                                | A1234
code  | It has the code A1234.                      | A1234
code  | The code of X is a1234-x.                   | a1234-x
code  | The code of X is **A1234**, since 1990.     | A1234
code  | The codes of X include:~- A1234~- place/A-B | A1234, place/A-B
code  | 0000 0001 2103 2683                         | 0000 0001 2103 2683
code  | TBD                                         |
code  | Not assigned                                |
code  | I cannot verify this.                       |
code  | See the Admiralty List of Lights.           |
motto | ```~X-1.~```                                | X-1.
motto | **The Rock**                                | The Rock
motto | „Einigkeit und Recht“                       | Einigkeit und Recht
motto | Motto: Lux in tenebris                      | Lux in tenebris
motto | The motto of X is Lux in tenebris.          | Lux in tenebris
motto | The motto of X is "I am the light.".        | I am the light.
motto | I am the light of the world.                | I am the light of the world.
motto | Rock 'n' Roll                               | Rock 'n' Roll
motto | - Lux~- In God We Trust                     | Lux, In God We Trust
motto | I cannot verify this.                       |
site  | Its site is https://a.org/b,c_(d).          | https://a.org/b,c_(d)
site  | [A](https://a.org/?b=c#d)                   | https://a.org/?b=c#d
site  | {"url": "http://a.org"}                     | http://a.org
site  | <https://a.org>, `https://b.org`            | https://a.org, https://b.org
site  | I'm unable to browse the web.               |
site  | Official site unknown                       |
"""
"""Relation, reply with ~ for line ends, objects."""


@pytest.mark.parametrize("row", READ.strip().splitlines())
def test_what_stands_around_a_text_is_left_out(row: str) -> None:
    name, text, objects = (cell.strip() for cell in row.split("|"))
    assert ", ".join(parse(text.replace("~", "\n"), RELATIONS[name], "X").objects) == objects


@pytest.mark.parametrize(
    ("text", "objects"),
    [
        ("rot, gelb und blau", ["rot", "gelb", "blau"]),
        ("rot, gelb, und blau", ["rot", "gelb", "blau"]),
        ("rojo, amarillo y azul", ["rojo", "amarillo", "azul"]),
        ("red, yellow and blue", ["red", "yellow", "blue"]),
        ("красный, жёлтый и синий", ["красный", "жёлтый", "синий"]),
        ("rot und blau", ["rot", "blau"]),
        ("schwarz und weiß; gelb, hell und klar", ["schwarz und weiß", "gelb, hell und klar"]),
    ],
)
def test_the_joint_before_the_last_text_of_a_list_parts_it(text: str, objects: list[str]) -> None:
    assert [*parse(text, replace(asking("strings", "colour"), shape=Shape()), "X").objects] == objects
    alone = replace(asking("strings", "colour"), shape=Shape(conjunction=False))
    assert (
        parse(text.replace(", und", " und"), alone, "X").objects[-1]
        == text.replace(", und", " und").split("; " if ";" in text else ", ")[-1]
    )


def test_a_text_that_denies_what_is_asked_for_is_none() -> None:
    assert parse("Keine Beschreibung verfügbar.", asking("text", "Beschreibung"), "X").state is State.ABSTAINED
    assert parse("Kein Ofen ist leiser.", asking("text", "Beschreibung"), "X").objects == ("Kein Ofen ist leiser.",)


@pytest.mark.parametrize("text", ["Ein Ofen aus Stahl. Er ist schwarz.", "Ein leiser Ofen. Das Gehäuse ist aus Stahl."])
def test_a_later_sentence_does_not_cut_a_text(text: str) -> None:
    assert parse(text, replace(asking("text", "description"), triple="ist"), "X").objects == (text,)


TITLES = """Titel | Der Titel von {} lautet | Das Werk
Der Titel lautet „Das Werk“.|Der Titel ist Das Werk.|Der Titel des Buches heißt »Das Werk«.|Titel: „Das Werk“
Sein Titel lautet: Das Werk.|Das Buch trägt den Titel "Das Werk".|Der Titel, den es trägt, lautet „Das Werk“.
title | The title of {} is | The War
The title is "The War".|The title of the war film is The War.|Its title is: “The War”.|Title: The War
titre | Le titre de {} est | Le Cri
Le titre est « Le Cri ».|Le titre du tableau est «Le Cri».|Titre : « Le Cri »|Il a pour titre « Le Cri ».
Son titre est Le Cri.
título | El título de {} es | El grito
El título es «El grito».|El título del cuadro es "El grito".|Su título es El grito.|Título: El grito
titolo | Il titolo di {} è | L'urlo
Il titolo è «L'urlo».|Il suo titolo è L'urlo.|Titolo: L'urlo
titel | De titel van {} is | De schreeuw
De titel luidt „De schreeuw”.|De titel van zijn boek is De schreeuw.|Titel: 'De schreeuw'
título | O título de {} é | O grito
O título é "O grito".|O título é O grito.
tytuł | Tytuł {} to | Krzyk
Tytuł to „Krzyk”.|Tytuł brzmi Krzyk.
название | Название {} — | Крик
Название картины — «Крик».|Название: Крик"""


@pytest.mark.parametrize("kind", ["text", "string", "strings", "entity"])
def test_a_sentence_about_a_noun_of_the_relation_gives_its_object(kind: str) -> None:
    wrong = []
    for line in TITLES.split("\n"):
        if " | " in line:
            name, sentence, title = line.split(" | ")
            statement = f"{sentence.format('{subject}')} {{object}}."
            clozes = (statement.replace("{object}", "{mask}"),)
            asked = small_relation(name, kind=kind, clozes=clozes, statement=statement, question=f"{name} {{subject}}?")
        else:
            wrong += [
                text for text in line.split("|") if sifted(parse(text, asked, "X").objects, asked, "X")[0] != (title,)
            ]
    assert not wrong


@pytest.mark.parametrize(
    "text", ["Das Leben ist schön", "Wo ein Wille ist, ist auch ein Weg", "La vie est belle", "El mundo es así"]
)
def test_a_sentence_without_a_noun_of_the_relation_is_a_text(text: str) -> None:
    assert parse(text, asking("text", "Titel"), "X").objects == (text,)


@pytest.mark.parametrize(
    ("text", "objects"),
    [
        ("ein Pferd und eine Reiterin", ["ein Pferd", "eine Reiterin"]),
        ("Das Bild zeigt ein Pferd und eine Reiterin.", ["ein Pferd", "eine Reiterin"]),
        ("ein Pferd, ein Hund und zwei Reiter", ["ein Pferd", "ein Hund", "zwei Reiter"]),
        ("der Mond und die Sonne", ["der Mond", "die Sonne"]),
        ("a horse and a rider", ["a horse", "a rider"]),
        ("Two women, an owl, and the moon", ["Two women", "an owl", "the moon"]),
        ("un cheval et une cavalière", ["un cheval", "une cavalière"]),
        ("L'enfant et la mère", ["L'enfant", "la mère"]),
        ("un caballo y una amazona", ["un caballo", "una amazona"]),
        ("un cavallo e una donna", ["un cavallo", "una donna"]),
        ("um cavalo e uma mulher", ["um cavalo", "uma mulher"]),
        ("een paard en een ruiter", ["een paard", "een ruiter"]),
        ("Bosnien und Herzegowina", ["Bosnien und Herzegowina"]),
        ("Ein Mann und eine Frau", ["Ein Mann und eine Frau"]),
        ("An American in Paris", ["An American in Paris"]),
        ("The Hague and Environs", ["The Hague and Environs"]),
        ("A Man and a Woman", ["A Man and a Woman"]),
        ("Le Rouge et le Noir", ["Le Rouge et le Noir"]),
        ("Die Brücke", ["Die Brücke"]),
        ("bread and a rose", ["bread and a rose"]),
    ],
)
def test_things_with_articles_are_several(text: str, objects: list[str]) -> None:
    asked = replace(asking("strings", "motif"), triple="zeigt", shape=Shape(separators=(";", "\n"), conjunction=False))
    assert [*parse(text, asked, "X").objects] == objects
    listed = replace(asked, shape=replace(asked.shape, variants={text: "Y"}))
    assert parse(text, listed, "X").objects == ((text,) if "zeigt" not in text else tuple(objects))


@pytest.mark.parametrize(
    ("text", "objects"),
    [
        ("Es zeigt ein Pferd und eine Reiterin.", ["Pferd", "Reiterin"]),
        ("Das Gemälde zeigt einen Hund.", ["Hund"]),
        ("Ein Pferd und eine Reiterin", ["Pferd", "Reiterin"]),
        ("un cheval et une cavalière", ["cheval", "cavalière"]),
        ("Un cavallo e una donna", ["cavallo", "donna"]),
        ("Ein Winter", ["Ein Winter"]),
        ("Die Brücke", ["Die Brücke"]),
    ],
)
def test_an_entity_is_without_the_article_of_a_sentence(text: str, objects: list[str]) -> None:
    asked = replace(asking("entity", "Motiv"), question="Was zeigt {subject}?", triple="zeigt")
    assert [*sifted(parse(text, asked, "X").objects, asked, "X")[0]] == objects


LINES = """Maria~Kind~Brot | Maria, Kind, Brot
Maria;~Kind;~Brot; | Maria, Kind, Brot
Moon~Sun~Stars | Moon, Sun, Stars
Motive:~~Maria~Kind | Maria, Kind
Maria~~Kind~~Brot | Maria, Kind, Brot
ein Mann~eine Frau mit rotem Hut | ein Mann, eine Frau mit rotem Hut
Maria~Kind~~Das Bild hängt im Louvre. | Maria, Kind
Maria~Das Bild hängt im Louvre. | Maria
Moon~(this is a guess) | Moon
Moon~The picture is in a museum | Moon
A man with a red hat.~A woman with a small dog. | A man with a red hat., A woman with a small dog.
Maria~Kind~usw. | Maria, Kind"""


@pytest.mark.parametrize("line", LINES.split("\n"))
def test_each_line_of_a_list_is_a_text_up_to_a_comment(line: str) -> None:
    text, objects = line.split(" | ")
    shape = Shape(separators=(";", "\n"), conjunction=False)
    assert (
        ", ".join(parse(text.replace("~", "\n"), replace(asking("strings", "Motiv"), shape=shape), "X").objects)
        == objects
    )
    alone = parse(text.replace("~", "\n"), asking("text", "Motiv"), "X").objects
    assert alone[0].rstrip(";") == objects.split(", ")[0]
    assert len(alone) == 1


PICTURES = """Auf dem Gemälde sind Pferde, ein Hund und ein Baum zu sehen.
Auf dem Bild sieht man Pferde, ein Hund und ein Baum.
Dargestellt sind Pferde, ein Hund und ein Baum.
Das Gemälde „X“ zeigt Pferde, die im Regen stehen, ein Hund und ein Baum.
Pferde, ein Hund, ein Baum usw.
Pferde, ein Hund, ein Baum, u. a.
The painting shows Pferde, ein Hund and ein Baum.
In the painting you can see Pferde, ein Hund and ein Baum.
Le tableau montre Pferde, ein Hund et ein Baum.
On voit Pferde, ein Hund et ein Baum.
El cuadro muestra Pferde, ein Hund y ein Baum.
Se ven Pferde, ein Hund y ein Baum.
Il dipinto raffigura Pferde, ein Hund e ein Baum.
Op het schilderij zijn Pferde, ein Hund en ein Baum te zien."""


@pytest.mark.parametrize("text", PICTURES.split("\n"))
def test_a_sentence_says_what_a_picture_shows(text: str) -> None:
    asked = replace(asking("strings", "Motiv"), shape=Shape())
    assert parse(text, asked, "X").objects == ("Pferde", "ein Hund", "ein Baum")


def test_a_list_that_begins_with_a_comma_is_read() -> None:
    assert parse(", red, blue", asking("strings", "colour"), "X").objects == ("red", "blue")
