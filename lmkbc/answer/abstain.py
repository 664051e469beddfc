"""Recognition of answers without an object: abstentions, refusals and prose, by general English phrases.

Words of a relation ("parent", "children", "stock exchange") come from its declaration. Thus "no parent organisation" is
an abstention, and the band "No Doubt" stays a name. Terms by which a declaration speaks of its objects are compared by
the stems of their words.
"""

from __future__ import annotations

import re
from functools import lru_cache

from lmkbc.names import folded_key, shown
from lmkbc.relation import Relation

_NOTHING = """
none, null, nil, nan, n a, no, false, nothing, empty, no one, nobody, nowhere, no answer, not found, not applicable,
not available, not known, not specified, not disclosed, not provided, not sure, not dead, not deceased, not died,
not yet, not married, never, not listed, not public, not publicly traded, unknown, unspecified, undefined, unclear,
undisclosed, uncertain, unavailable, undetermined, inapplicable, missing, alive, still alive, currently alive, living,
still living, unmarried, never married, unlisted, privately held, privately owned, independent, no data, no information,
childless, not awarded, not presented, not given, not held, not assigned, unassigned, tbd, to be determined,
no record, non existent, non existing, non applicable, non available, empty list, empty set, no result, no results,
none known, none recorded, none found, none of the above, i dont know, dont know, unsure,
private, private company, privately held company, privately owned company, private firm, private business
"""


_NOTHING_WORDS = frozenset(" ".join(phrase.split()) for phrase in _NOTHING.split(","))


_EMPTY_MARKS = frozenset(("-", "--", "–", "—", "[]", "{}", "()", "set()", "∅", '""', "''"))
"""Signs for an empty answer. Empty text, dots and question marks are no answer, so they are not among them."""


_MARKS = re.compile(r"""[\s.,;:*_~{}()"'`“”‘’«»„–—-]*""")


def _any_of(*phrases: str) -> re.Pattern[str]:
    """Return a pattern that finds any of some phrases, as whole words."""
    return re.compile("|".join(rf"\b(?:{phrase})\b" for phrase in phrases))


_DENIAL = _any_of(
    r"not (?:applicable|available|publicly|known|listed|traded|married|currently married|won)",
    r"not (?:specified|disclosed|recorded)",
    r"not (?:yet )?(?:dead|died|deceased|passed away)",
    r"never (?:been )?(?:legally |formally )?(?:married|won|awarded|received)",
    r"(?:still|currently)(?: be(?:ing)?)? (?:alive|living)",
    r"(?:is|are) (?:alive|living|independent|unknown|unmarried|undisclosed|an independent)",
    r"privately (?:held|owned)|no longer (?:publicly traded|trades on any)|remain(?:s|ed) (?:single|unmarried)",
    r"(?:is|remains) (?:still |currently )?a private (?:company|corporation|firm|business|enterprise)",
    r"(?:does|do|did|has|have|had|is|are|was|were|can)(?: not|nt) (?:currently |publicly )?(?:a part|any|applicable|"
    r"available|been|border|borders|exist|have|hold|known|listed|part|play|public|received|recorded|share|speak|"
    r"subsidiary|trade|traded|win|won|written|lie|located|situated|write)",
    r"(?:has|have|had|there (?:is|are|was|were)) no",
    r"no (?:known|official|recorded|public|confirmed|information|data|records?|evidence|answer)",
    r"(?:dont|do not|doesnt|does not|not) (?:know|sure)|not aware of an?y?",
    r"(?:not|arent|isnt) (?:a \w+ )?(?:im )?(?:familiar with|publicly documented|something i can)",
    r"i dont recogni[sz]e|no publicly available|could(?: not|nt) (?:determine|(?:find|identify) an?y?)",
    r"not a subsidiary|(?:has|have)nt (?:yet )?(?:died|passed away|married|won)|answer is (?:none|nothing|nobody)",
    r"(?:cannot|can not|could not) be determined",
    r"^(?:none|unknown|n a|not applicable) (?:as|at|since|because|due|to|for|given|based|according|until|in)",
)


_WITH_NO = re.compile(r"\b(?:(?:with|wrote|\w+ed|\w+s) no|never (?:\w+ )?(?:wrote|\w+ed) an?y?) (\w+(?: \w+)?)")


_REFUSAL = _any_of(
    r"as an? (?:ai|artificial|large language|language)",
    r"language model",
    r"i(?: am|m) (?:very |so |really )?(?:sorry|unable|not able)",
    r"sorry",
    r"i (?:can ?not|cant|could not) (?:provide|answer|assist|help|give|find|access|browse|verify|complete|comply)",
    r"i apologi[sz]e",
    r"my apologies",
)


_FAILED = re.compile(
    r"\W*(?:抱歉|对不起|對不起|很抱歉|申し訳|すみません|죄송|lo siento|lamento|je suis désolé|désolé"
    r"|(?:es )?tut mir leid|leider kann|mi dispiace|desculpe|sinto muito|извините|к сожалению"
    r"|(?:[45]\d\d:? )?(?:(?:error|exception)\s*[:(]|(?:the )?request (?:timed out|failed)|service unavailable"
    r"|(?:an )?internal (?:server )?error|too many requests|rate limit"
    r"|bad gateway|upstream connect|gateway time|server overloaded"
    r"|connection (?:error|refused|reset|timed)))"
    r"|\{\s*\"(?:error|refusal|\$schema)\"\s*:|\{\s*\"type\": \"object\", \"prop"
    r"|<(?:!doctype )?html\b[^\n]{0,300}<title>[^<]{0,60}"
    r"(?:\d{3}|error|gateway|log ?in|sign in|unavailable|denied|just a moment|attention)",
    re.IGNORECASE,
)
"""Apologies in other languages, and what servers and front ends write in place of an answer."""


_DONT_KNOW = re.compile(r"\b(?:dont|do not) know\b")


_VERBS = (
    "is was are were has have had does did will would could should must might includes include refers died born "
    "consists consisted comprises comprised plays played speaks spoke acquired "
    "located known based depends because which who that there here cannot we you it they he she"
)


_VERB = re.compile(rf" (?:{'|'.join(_VERBS.split())})(?= |$|[,.])")
_SLOT = re.compile(r"\{\w+\}")
_CLAUSE = re.compile(
    r"(?:he|she|it|they|i|we|there|this|that|these|those) (?:is|was|are|were|has|have|had|do|does|did) "
)
_I_AM = re.compile(r"(?:so )?I(?:['’]m| am| can| could| don)")
_DOES = re.compile(r"(?:He|She|It|They|I|We|There|This|That) (?:[a-z]+ly )?[a-z]+(?:ed|s) [a-z]")
"""A pronoun and a verb, as in "She passed away"; the words of a title are capitalised."""


_YES = frozenset(("yes", "true"))


_FURTHER = (["other"], ["others"], ["various"], ["several"], ["many"], ["et", "al"], ["etc"])


_SHELLS = frozenset(
    "json python markdown yaml xml html csv plaintext assistant user model system output response answer answers sure "
    "okay ok".split()
) | {"object object"}
"""Words that stand around answers; alone they are none."""


LONG = 25
"""More words than this make even a quoted text prose."""


def is_abstention(text: str, relation: Relation) -> bool:
    """Return whether one answer (a list element, a line, a short sentence) says that there is no object."""
    text = shown(text)
    if text in _EMPTY_MARKS:
        return True
    key = folded_key(text)
    if relation.has_entities() and key in ("zero", "0"):
        return True
    if key in _NOTHING_WORDS or key == "na":
        marked = any(letter.isalpha() and not letter.isascii() for letter in text)  # folding turns "Ñañ" into "nan"
        return not marked and text.strip(" .") not in ("Na", "Nan")  # the symbol of sodium, and a province
    first, _, rest = key.partition(" ")
    if first in ("no", "without", "none", "non") and rest and not text.lower().startswith("non-"):
        following = text.replace("-", " ").split()[1:2]
        word = rest.split(" ", 1)[0]
        if (following and following[0].islower()) or word in _relation_terms(relation) or key in _NOTHING_WORDS:
            return True
    lacks = any(word in _relation_terms(relation) for found in _WITH_NO.findall(key) for word in found.split())
    return not _is_title(text) and (lacks or bool(_DENIAL.search(key)))


def is_mute(answer: str) -> bool:
    """Return whether an answer consists of mere marks, such as "-", "{}" or a pair of quotes.

    They neither name nor deny an object. An empty list is not among them, and neither are signs for nothing inside a
    list.
    """
    return _MARKS.fullmatch(answer) is not None


def is_refusal(text: str) -> bool:
    """Return whether a model declines to answer, which differs from the answer that there is no object."""
    key = folded_key(text)
    return is_failure(text) or (bool(_REFUSAL.search(key)) and not _DONT_KNOW.search(key))


def is_failure(text: str) -> bool:
    """Return whether a text is an apology in another language, an error of a server, or the mere name of a format."""
    return _FAILED.match(text) is not None or text.strip(" .:![]").casefold() in _SHELLS


def is_prose(text: str, subject: str, quoted: bool = False) -> bool:
    """Return whether a text is a sentence, or a bare yes, instead of a name. The test is milder for quoted texts."""
    words = text.split()
    if folded_key(text) in _YES or len(words) > LONG:
        return True
    lowered = f"{text.lower()} ".replace('"', "")
    start = subject.lower()
    after = lowered[len(start) :] if start and lowered.startswith(start) else ""
    if (after and _VERB.match(after)) or _CLAUSE.match(lowered) or _DOES.match(text):
        return True
    restates = len(words) > 6 and start and lowered.startswith("the ") and start in lowered
    speaks = _I_AM.match(text) and not _is_title(text)
    return not quoted and (len(words) > 12 or bool(restates or speaks) or has_verb(text))


def has_verb(text: str) -> bool:
    """Return whether an unquoted text of several words reads like a sentence."""
    return len(text.split()) > 3 and _VERB.search(text) is not None


def _is_title(text: str) -> bool:
    """Return whether a text is capitalised like the title of a work: three words or more, the long ones capitalised."""
    words = [word.strip(".,;:!?") for word in text.split()]
    long = [word for word in words if len(word) > 3 and word.isalpha()]
    return len(words) >= 3 and len(long) >= 2 and not any(word[0].islower() for word in long)


@lru_cache(maxsize=256)
def _words(*texts: str) -> frozenset[str]:
    folded = (folded_key(_SLOT.sub(" ", text)) for text in texts)
    return frozenset(word for text in folded for word in text.split() if len(word) > 3)


def _relation_terms(relation: Relation) -> frozenset[str]:
    kinds = relation.subject_type.noun, relation.object_type.noun
    general = (
        "known official public information data record evidence such answer recorded confirmed available applicable"
    )
    return _words(*kinds, relation.triple, relation.question, general)


def relation_words(relation: Relation) -> frozenset[str]:
    """Return the words of a relation's phrase, in any edition's spelling."""
    return _words(relation.name, relation.triple, relation.question, *_spelt_out(relation)) | {"has", "is", "at", "of"}


def is_placeholder(name: str, relation: Relation) -> bool:
    """Return whether a name only states the type of the object: "State A", "Member 2", "other languages"."""
    words = folded_key(name).split()
    if words in _FURTHER:
        return True
    if words[:1] in _FURTHER:
        noun = _words(relation.object_type.noun)
        return all(word in noun or word.removesuffix("s") in noun for word in words[1:])
    if len(words) > 1 and (len(words[-1]) == 1 or words[-1].isdigit()):
        words = words[:-1]
    return bool(words) and _words(relation.object_type.noun, *_spelt_out(relation)).issuperset(words)


def _spelt_out(relation: Relation) -> list[str]:
    return [re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name) for name in relation.names]


_STOP = frozenset(
    "the and which that who what whom whose has have had was were are for with from its this these those does did not "
    "been being itself when where while each every all any one other such than then there their into out".split()
)


def object_terms(relation: Relation) -> frozenset[str]:
    """Return the terms for a relation's objects: the words of their type."""
    return stems(relation.object_type.noun)


def phrase_terms(relation: Relation) -> frozenset[str]:
    """Return the terms of the verb phrase between subject and object."""
    return stems(relation.triple)


def terms(relation: Relation) -> frozenset[str]:
    """Return all terms of a relation's declaration, and those for an answer."""
    texts = (relation.object_type.noun, relation.triple, relation.question, relation.definition, *relation.clozes)
    known = stems(*texts, "answer")
    return known | stems(*(other for word, other in _ALSO.items() if _stem(word) in known))


_ALSO = {
    "death": "passed killed murdered assassinated executed drowned dead",
    "speaks": "spoke",
    "spouse": "husband wife",
    "married": "husband wife",
    "basin": "covers drains",
    "borders": "neighbours surrounded bordered",
    "border": "neighbours surrounded bordered",
}
"""Words that declarations use -> what models write for them, too."""


def has_term(text: str, known: frozenset[str]) -> bool:
    """Return whether a folded text holds any of some terms."""
    return not known.isdisjoint(map(_stem, text.split()))


def is_made_of(text: str, known: frozenset[str]) -> bool:
    """Return whether all words of a folded text are terms."""
    return bool(text) and known.issuperset(map(_stem, text.split()))


@lru_cache(maxsize=1024)
def stems(*texts: str) -> frozenset[str]:
    """Return the words of texts as terms, without words that state nothing."""
    words = folded_key(_SLOT.sub(" ", "\n".join(texts))).split()
    return frozenset(_stem(word) for word in words if len(word) > 2 and word not in _STOP)


@lru_cache(maxsize=4096)
def _stem(word: str) -> str:
    """Return a word without the endings of plurals and of verbs, in American spelling."""
    word = word.replace("isation", "ization").replace("bour", "bor")
    return re.sub(r"(?:er)?(?:ies|y|ed|es|s|ing|e)$|er$", "", word) if len(word) > 3 else word
