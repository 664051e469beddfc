"""Phrases: the grammatical form of a property's label, from its words.

"date of birth" is a noun phrase, "influenced by" a participle and its preposition, and "crosses" a verb. "member of
political party" is a role with the noun of its objects. A label of any other form is read as a noun phrase.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

PREPOSITIONS = frozenset(
    "of in by at on from to with for after as than into about near above under over against through between during "
    "within without along across behind per".split()
)
_LINKS = frozenset("or and next".split())
"""Words that join two prepositions, as in "located in or next to body of water"."""
PARTICIPLES = {
    word: word
    for word in "made led built held found won set shot sold taught bound spun met broadcast kept lost sent paid "
    "bought brought caught".split()
} | {
    "written": "wrote",
    "known": "knew",
    "born": "bore",
    "drawn": "drew",
    "chosen": "chose",
    "given": "gave",
    "taken": "took",
    "sung": "sang",
    "spoken": "spoke",
    "worn": "wore",
    "begun": "began",
    "driven": "drove",
    "run": "ran",
    "grown": "grew",
    "thrown": "threw",
    "flown": "flew",
}
"""Irregular past participles, and the past forms of their verbs."""
_NO_PARTICIPLES = frozenset("seed breed need feed speed embed hundred weed deed shed sled".split())
PAST = {
    "participated": "participate",
    "contributed": "contribute",
    "competed": "compete",
    "emigrated": "emigrate",
    "worked": "work",
    "lived": "live",
    "served": "serve",
    "appeared": "appear",
    "played": "play",
    "died": "die",
    "fought": "fight",
    "studied": "study",
    "performed": "perform",
    "started": "start",
}
"""Past forms of verbs without an object, and their infinitives: "participated in" is something that subjects did."""
VERBS = {
    "does": "do",
    "follows": "follow",
    "replaces": "replace",
    "crosses": "cross",
    "uses": "use",
    "contains": "contain",
    "shares": "share",
    "connects": "connect",
    "depends": "depend",
    "represents": "represent",
    "depicts": "depict",
    "produces": "produce",
    "includes": "include",
    "requires": "require",
    "owns": "own",
    "treats": "treat",
    "affects": "affect",
    "encodes": "encode",
    "regulates": "regulate",
    "describes": "describe",
    "supports": "support",
    "implements": "implement",
    "extends": "extend",
    "belongs": "belong",
    "consists": "consist",
    "serves": "serve",
    "speaks": "speak",
    "interacts": "interact",
    "applies": "apply",
    "carries": "carry",
    "afflicts": "afflict",
    "wears": "wear",
    "develops": "develop",
    "offers": "offer",
    "emulates": "emulate",
    "causes": "cause",
    "prevents": "prevent",
    "operates": "operate",
    "manages": "manage",
    "controls": "control",
    "teaches": "teach",
    "commemorates": "commemorate",
    "underlies": "underlie",
    "overlies": "overlie",
    "computes": "compute",
    "appears": "appear",
    "mentions": "mention",
    "provides": "provide",
}
"""Verbs in the third person, and their infinitives."""
PRESENT = frozenset(
    "owned operated governed studied practiced worshipped used represented inhabited maintained sponsored distributed "
    "caused encoded regulated managed controlled powered depicted described supported".split()
)
"""Participles before "by" of something that lasts: it is owned by, but was founded by."""
_EVENTS = frozenset(
    "educated convicted killed born buried created discovered produced filmed released built founded awarded charged "
    "launched introduced published derived nominated".split()
)
"""Participles before other prepositions of something that happened."""
_ROLES = frozenset(
    "member participant student part present candidate contributor supporter opponent native coach".split()
)
"""Nouns whose preposition is followed by the noun of objects: "member of political party"."""
_PAST_ROLES = frozenset("member participant candidate contributor coach".split())
"""Roles that end: their former objects count as well."""
_BARE = frozenset(
    "coextensive coincident dual part present different endemic native adjacent similar next subject equivalent "
    "indigenous".split()
)
"""Words that have no article before their preposition."""
_DEFINITE = frozenset("capital opposite cause center centre seat namesake source mouth name owner".split())
_UNCOUNTED = frozenset(
    "software hardware equipment staff music information politics physics economics news percent hertz".split()
)
_PLURALS = {word: word for word in ("series", "species", "sheep", "aircraft", "spacecraft")} | {
    "child": "children",
    "person": "people",
    "man": "men",
    "woman": "women",
    "genus": "genera",
    "phylum": "phyla",
    "taxon": "taxa",
    "terminus": "termini",
    "lens": "lenses",
    "gas": "gases",
    "atlas": "atlases",
    "canvas": "canvases",
    "editor-in-chief": "editors-in-chief",
    "commander-in-chief": "commanders-in-chief",
}
_SINGLE_PLURALS = frozenset(plural for single, plural in _PLURALS.items() if single != plural)
_AN_EXCEPTIONS = re.compile(r"(?i:uni(?!m|n)|use|one\b|eu|ut[ei])|U[A-Z]")
_AN = re.compile(r"(?i:[aeio]|u|ho(?:ur|no)|heir)|[FHLMNRSX](?:[A-Z]|\b)")


@dataclass(frozen=True, slots=True)
class Noun:
    """A noun phrase: the phrase of subject and object is "the NOUN of SUBJECT is OBJECT"."""

    text: str


@dataclass(frozen=True, slots=True)
class Done:
    """A noun phrase with a participle: "award", "received", and its past form. SUBJECT received the award OBJECT."""

    noun: str
    participle: str
    past: str


@dataclass(frozen=True, slots=True)
class Predicate:
    """Phrase of what a subject is or does to its object.

    verb: finite verb phrase before the object, as in "shares a border with".
    auxiliary, rest: the same in a question, as in "does" and "share a border with".
    tail: noun of the objects, if the label names it, as in "political party".
    """

    verb: str
    auxiliary: Literal["is", "was", "has", "does", "did"]
    rest: str
    tail: str = ""


Phrase = Noun | Done | Predicate


def clean(label: str) -> str:
    """Return a label without what no template or sentence can hold.

    This is braces, quotes, "(s)", a remark behind "/", and what is not printable: control characters, marks that change
    the direction of writing, halves of surrogate pairs.
    """
    text = re.sub(r"\(e?s\)|\s/\s.*", "", label.replace("\\", " "))
    text = re.sub(r"(?<=\w)/(?=\w)", " or ", text)
    held = "".join(char if char.isprintable() and char not in '{}"`' else " " for char in text)
    return " ".join(held.split()) or "value"


def phrase(label: str) -> Phrase:
    """Return the form of a cleaned label."""
    words = label.split()
    first, end = words[0], words[-1]
    if first == "has" and len(words) > 1:
        return Noun(" ".join(words[1:]))
    if first == "is" and end in PREPOSITIONS:
        return Predicate(label, "is", " ".join(words[1:]))
    if first in VERBS:
        return _verb(words)
    stop = _particle_end(words, 1)
    if stop > 1 and end in PREPOSITIONS:
        stop = len(words)
    if stop > 1 and first in PAST and "by" not in words[1:stop]:
        particle = " ".join(words[1:stop])
        return Predicate(f"{first} {particle}", "did", f"{PAST[first]} {particle}", _tail(words, stop))
    if stop > 1 and is_participle(first):
        rest, was = " ".join(words[:stop]), first in _EVENTS or (words[1] == "by" and first not in PRESENT)
        return Predicate(f"{'was' if was else 'is'} {rest}", "was" if was else "is", rest, _tail(words, stop))
    if end in PREPOSITIONS and len(words) > 1:
        return _role(words, len(words))
    if first in _ROLES and stop > 1:
        return _role(words, stop)
    if len(words) > 1 and is_participle(end):
        at = next(place for place, word in enumerate(words) if is_participle(word.strip(",")))
        at -= words[at - 1].endswith("ly")
        if at > 0:
            done = " ".join(words[at:])
            return Done(
                " ".join(words[:at]), done, re.sub(r"\w+", lambda word: PARTICIPLES.get(word[0], word[0]), done)
            )
    return Noun(label)


def is_participle(word: str) -> bool:
    """Return whether a word has the form of a past participle."""
    return word in PARTICIPLES or (len(word) > 3 and word.endswith("ed") and word not in _NO_PARTICIPLES)


def article(noun: str) -> str:
    """Return a noun phrase with "a" or "an"; one that cannot be counted, such as "software", as it is."""
    if is_uncounted(noun):
        return noun
    vowel = _AN.match(noun) and not _AN_EXCEPTIONS.match(noun)
    return f"{'an' if vowel else 'a'} {noun}"


def plural(noun: str) -> str:
    """Return the plural of a noun phrase: of the noun before its first preposition, and of all sides of an "or"."""
    words = noun.split()
    head = _head(words)
    for place in range(head + 1):
        if place == head or words[place].endswith(",") or words[place + 1] == "or":
            words[place] = _plural(words[place].rstrip(",")) + "," * words[place].endswith(",")
    return " ".join(words)


def is_uncounted(noun: str) -> bool:
    """Return whether a noun phrase has no plural, such as "software" and "handedness"."""
    word = noun.split()[_head(noun.split())]
    return word in _UNCOUNTED or word.endswith("ness")


def is_plural(noun: str) -> bool:
    """Return whether a noun phrase is in the plural already."""
    words = noun.split()
    head = words[_head(words)]
    return head in _SINGLE_PLURALS or not (is_uncounted(noun) or head in _PLURALS or _plural(head) != head)


def _head(words: list[str]) -> int:
    """Return the place of the noun before the first preposition of a noun phrase, and before a participle there."""
    head = next((place for place, word in enumerate(words) if word in PREPOSITIONS and place), len(words)) - 1
    if words[0] == "degree":  # of Celsius
        return 0
    return head - (head > 0 and is_participle(words[head]))


def _plural(word: str) -> str:
    if word in _PLURALS:
        return _PLURALS[word]
    if word in _UNCOUNTED or word in _SINGLE_PLURALS or re.search(r"[^sui]s$|ness$", word):
        return word
    if re.search(r"[^aeiou]y$", word):
        return f"{word[:-1]}ies"
    if word.endswith("is"):
        return f"{word[:-2]}es"
    return f"{word}es" if re.search(r"(?:s|x|z|ch|sh)$", word) else f"{word}s"


def _particle_end(words: list[str], start: int) -> int:
    """Return the end of a run of prepositions and of words that join them; `start` if there is none."""
    end = at = start
    while at < len(words) and words[at] in PREPOSITIONS | _LINKS:
        at += 1
        if words[at - 1] in PREPOSITIONS:
            end = at
    return end


def _tail(words: list[str], start: int) -> str:
    return " ".join(words[start + (words[start : start + 1] == ["the"]) :])


def _verb(words: list[str]) -> Predicate:
    """Return the form of a label that begins with a verb: "follows", "depends on software", "shares border with"."""
    infinitive, rest = VERBS[words[0]], words[1:]
    stop = _particle_end(words, 1)
    if stop == 1 and words[-1] in PREPOSITIONS:
        particle, tail = f"{article(' '.join(rest[:-1]))} {words[-1]}", ""
    else:
        particle, tail = " ".join(words[1:stop]), _tail(words, stop)
    return Predicate(f"{words[0]} {particle}".strip(), "does", f"{infinitive} {particle}".strip(), tail)


def _role(words: list[str], stop: int) -> Predicate:
    """Return the form of "member of", "capital of", "different from", with or without the noun of objects."""
    noun, text = words[0], " ".join(words[:stop])
    if noun in _DEFINITE:
        text = f"the {text}"
    elif not (noun in _BARE | PREPOSITIONS or is_participle(noun) or noun.endswith("ly") or is_plural(noun)):
        text = article(text)
    if noun in _PAST_ROLES:
        return Predicate(f"has been {text}", "has", f"been {text}", _tail(words, stop))
    if words[-1] == "by" and noun not in PREPOSITIONS and words[-2] == noun:
        return Predicate(f"has {noun} by", "does", f"have {noun} by")
    return Predicate(f"is {text}", "is", text, _tail(words, stop))
