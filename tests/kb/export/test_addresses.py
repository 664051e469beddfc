"""Addresses and language codes in triples: what is written, every reader of RDF accepts; the rest is counted."""

import re

import pytest
import rdflib
from hypothesis import example, given
from hypothesis import strategies as st
from pyoxigraph import RdfFormat, parse

from lmkbc.testing.exports import WrittenExport, exported, fact

GOOD = """
https://example.org/
https://example.org/?a=b?c=d#e
https://müller.example/ä
https://example.org/🌊
HTTPS://EXAMPLE.ORG
http://a:b@c:80/x%20y
https://en.wikipedia.org/wiki/Chad_(country)
http://例え.jp/𠮷:@;,='*!$&()~
""".split()
BAD = [
    *"https://example.org/a#b#c https://example.org/100% https://example.org/%zz https://example.org:port/".split(),
    *"http://example.org:99999999/ http://[::1/x https://example.org/a[1] http://a@b@c/ http:// https:///a".split(),
    *"http://:80/ http://?a http://user@/ example.org ftp://a.b https://a.b/{c} https://a.b/<c> http:a http:/a".split(),
    *(
        f"https://example.org/{sign}"
        for sign in '\ue000 \u200b \u202ea \ufffe \ufdd0 \U000e0001 \x00 \\ ^ ` | " \ud800'.split()
    ),
    *("https://example.org/a b", " https://example.org/", "https://example.org/\n", "https://a\u00a0b.org/", ""),
]


def website(text: str, form: str) -> WrittenExport:
    return exported(form, [fact(text, kind="url", property="P856")])


@pytest.mark.parametrize("form", ["ntriples", "statements", "wikidata-json", "quickstatements"])
def test_an_address_that_no_reader_accepts_is_left_out_and_counted(form: str) -> None:
    for text in GOOD:
        made = website(text, form)
        assert (made.facts, made.left_out) == (1, {}), text
    for text in BAD:
        made = website(text, form)
        assert (made.facts, made.left_out) == (0, {"no web address": 1}), text


SIGNS = st.text(
    st.sampled_from([*"a:/?#[]@%.2fF-_~!$&'()*+,;=é\u00a0\u200b\ue000\U0010ffff 例"]) | st.characters(), max_size=20
)


@given(SIGNS | st.from_regex(r"\A(//)?([a:@%2é]*@)?[a:\[\].1]*(:[0-9a]*)?[/?#%@a\[]*\Z"))
@example("//[::1]/")
@example("//a:b:c@d@e")
def test_whatever_address_is_written_is_read_by_two_libraries(rest: str) -> None:
    for prefix in ("http://", "https://a.b/", "http:"):
        for form in ("ntriples", "statements"):
            written = website(prefix + rest, form).text
            assert len([*parse(written, RdfFormat.N_TRIPLES)]) == written.count("\n")
            rdflib.Graph().parse(data=written, format="nt")


LETTERS = st.text(st.sampled_from("abxDE419-_@ é"), max_size=12)


@given(LETTERS | st.from_regex(r"[a-z]{1,9}(-[a-zA-Z0-9]{1,9}){0,4}", fullmatch=True))
@example("zh-classical")
@example("de_AT")
def test_whatever_language_a_relation_has_every_line_is_a_triple(language: str) -> None:
    row = fact("Die Blechtrommel", kind="text", property="P1476")
    row = row._replace(about=type(row.about)("P1476", "text", language=language))
    made = exported("ntriples", [row])
    assert len([*parse(made.text, RdfFormat.N_TRIPLES)]) == made.facts
    assert made.facts or made.left_out == {"a language code that RDF does not accept": 1}


@pytest.mark.parametrize("code", "de und mul zh-hans pt-br be-x-old roa-tara es-419 sr-Latn zh-min-nan nds-nl".split())
def test_a_text_has_its_language_in_every_format(code: str) -> None:
    row = fact("Die Blechtrommel", kind="text", property="P1476")
    row = row._replace(about=type(row.about)("P1476", "text", language=code))
    for form in ("ntriples", "statements"):
        (literal,) = {
            one.object
            for one in parse(exported(form, [row]).text, RdfFormat.N_TRIPLES)
            if one.object.__class__.__name__ == "Literal" and one.object.language
        }
        assert literal.language == code.lower()
    for form in ("csv", "graphml", "wikidata-json", "quickstatements", "quickstatements-csv"):
        assert re.search(rf"\b{code}\b", exported(form, [row]).text), form


@pytest.mark.parametrize(("language", "tag"), [("de", "@de"), ("", ""), ("no language", "")])
def test_labels_of_things_have_the_language_of_the_relation(language: str, tag: str) -> None:
    row = fact("Turm", kind="entity", property="P47")
    row = row._replace(about=type(row.about)("P47", "entity", language=language))
    for form in ("ntriples", "statements"):
        labels = [one for one in exported(form, [row]).text.splitlines() if "rdf-schema#label" in one]
        assert labels
        assert all(one.endswith(f'"{tag} .') for one in labels), labels
