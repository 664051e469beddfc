"""N-Triples 1.1: terms and lines. Whatever a model wrote, a line is one triple of absolute IRIs and escaped text."""

from __future__ import annotations

import re
from urllib.parse import quote

from lmkbc.errors import InputError

ENTITY = "http://www.wikidata.org/entity/"
PROP = "http://www.wikidata.org/prop/"
WIKIBASE = "http://wikiba.se/ontology#"
XSD = "http://www.w3.org/2001/XMLSchema#"
RDF_TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
RDFS_LABEL = "<http://www.w3.org/2000/01/rdf-schema#label>"
CREATED = "<http://purl.org/dc/terms/created>"
OWN = "urn:lmkbc:"
"""The space of IRIs of what Wikidata has no item for, unless another is given."""
_BASE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20<>\"{}|^`\\\x7f-\x9f]*[/#:]")
_ESCAPED = re.compile(r'[\x00-\x1f"\\\x7f-\x9f\u2028\u2029\ufffe\uffff]')
_SHORT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r"}


def checked_base(base: str) -> str:
    """The beginning of one's own IRIs. InputError for one that is not absolute, or has no end to add a name to."""
    if not _BASE.fullmatch(base) or not base.isascii():
        raise InputError(f"--base is {base!r}: give the beginning of an absolute IRI that ends with /, # or :")
    return base


def iri(space: str, name: str = "") -> str:
    """An IRI: a space, which is sound, and a name within it, of which all that is no letter or digit is escaped."""
    return f"<{space}{quote(name, safe='', errors='backslashreplace')}>"


def text(value: str, datatype: str = "") -> str:
    """A literal, plain or of one of XML Schema's types."""
    escaped = _ESCAPED.sub(lambda char: _SHORT.get(char[0]) or f"\\u{ord(char[0]):04X}", value)
    escaped = escaped.encode("utf-8", "backslashreplace").decode() if not escaped.isascii() else escaped
    return f'"{escaped}"' + (f"^^<{XSD}{datatype}>" if datatype else "")


def signed(digits: str) -> str:
    """A number as Wikidata writes it: with its sign."""
    return digits if digits.startswith("-") else f"+{digits}"


def line(subject: str, predicate: str, value: str) -> str:
    """A triple."""
    return f"{subject} {predicate} {value} .\n"
