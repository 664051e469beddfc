"""Facts beside what is known: in every format, whole or cut off; marks, precision, and the list of new facts."""

import bz2
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from bases import ATTACK, fact, written
from command import Command

WD = "http://www.wikidata.org/"
KNOWN = [("Q1", "P47", "Q10"), ("Q1", "P1971", "4"), ("Q2", "P47", "Q12"), ("Q2", "P1971", "7"), ("Q9", "P47", "Q1")]
MARKS = {
    ("subject 0", "Niger"): "known",
    ("subject 0", "Mali"): "new",
    ("subject 0", "nowhere"): "new",
    ("subject 0", "4"): "known",
    ("subject 1", "5"): "contradicting",
    ("subject 2", ATTACK): "not covered",
}


@pytest.fixture
def run(command: Command) -> Command:
    written(
        Path("kb"),
        [
            fact(0, "country-borders", "Niger", 0.9, object_id="Q10"),
            fact(0, "country-borders", "Mali", 0.3, object_id="Q11"),
            fact(0, "country-borders", "nowhere", 0.2),
            fact(2, "country-borders", ATTACK, 0.8, object_id="Q13"),
            fact(0, "children", "4", 0.9, literal="4"),
            fact(1, "children", "5", 0.6, literal="5"),
        ],
    )
    return command.under("audit", "kb")


def table() -> bytes:
    return "".join(",".join(row) + "\n" for row in [("subject", "property", "object"), *KNOWN]).encode()


def triples() -> bytes:
    values = [(one, name, f"<{WD}entity/{value}>" if value[0] == "Q" else f'"+{value}"') for one, name, value in KNOWN]
    lines = [f"<{WD}entity/{one}> <{WD}prop/direct/{name}> {value} .\n" for one, name, value in values]
    return "".join(lines).encode()


def entity(qid: str) -> dict[str, Any]:
    claims: dict[str, list[Any]] = {"P31": [{"mainsnak": {"datavalue": {"value": {"time": "+2000", "before": 0}}}}]}
    for name, value in [(name, value) for one, name, value in KNOWN if one == qid]:
        known: Any = {"id": value} if value[0] == "Q" else {"amount": f"+{value}", "unit": "1"}
        claims.setdefault(name, []).append({"mainsnak": {"datavalue": {"value": known}}, "rank": "normal"})
        wrong = {"mainsnak": {"datavalue": {"value": {"id": "Q11"}}}, "rank": "deprecated"}
        claims[name] += [wrong, {"mainsnak": {"snaktype": "somevalue"}}]
    return {"type": "item", "id": qid, "labels": {}, "claims": claims}


def dumped() -> list[bytes]:
    return [b"[\n", *(json.dumps(entity(qid)).encode() + b",\n" for qid in ("Q1", "Q2", "Q9")), b"]\n"]


def marks(place: Path) -> dict[tuple[str, str], str]:
    return {(row["subject"], row["object"]): row["mark"] for row in pl.read_csv(place).iter_rows(named=True)}


FORMS: dict[str, Callable[[], bytes]] = {"csv": table, "nt": triples, "json": lambda: b"".join(dumped())}


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress])
@pytest.mark.parametrize("form", FORMS)
def test_marks_in_every_format(run: Command, form: str, pack: Callable[[bytes], bytes]) -> None:
    Path("known").write_bytes(pack(FORMS[form]()))
    run.done("--known", "known", "--out", "marked.csv")
    assert marks(Path("marked.csv")) == MARKS


def test_a_dump_in_pieces(run: Command) -> None:
    lines = dumped()
    for place, piece in (("a", lines[:2]), ("b", lines[2:])):
        Path(place).write_bytes(gzip.compress(b"".join(piece)))
    run.done("--known", "a", "--known", "b", "--out", "marked.csv")
    assert marks(Path("marked.csv")) == MARKS
    assert "b ends" not in run.fails("--known", "a", "--out", "more.csv")  # the piece that lacks its end is named
    assert not Path("more.csv").exists()


def test_new_facts_come_first_and_the_likeliest_on_top(run: Command) -> None:
    Path("known").write_bytes(table())
    shown, told = run.done("--known", "known", "--out", "marked.csv")
    assert told.splitlines()[0].endswith("1 subject, whose facts are therefore not called new: subject 2 (Q3)")
    listed = pl.read_csv("marked.csv")
    assert listed["mark"].to_list() == ["new"] * 2 + ["contradicting"] + ["known"] * 2 + ["not covered"]
    assert listed["expected"].to_list()[:2] == sorted(listed["expected"].to_list()[:2], reverse=True)
    assert listed.filter(mark="contradicting")["known"].to_list() == ["7"]
    found = json.loads(run.done("--known", "known", "--json")[0])
    assert (found["unstated"], found["uncovered"]) == ([], ["subject 2 (Q3)"])
    whole = found["known"][-1]
    assert {name: whole[name] for name in ("facts", "known", "contradicting", "new", "uncovered", "checked")} == {
        "facts": 6,
        "known": 2,
        "contradicting": 1,
        "new": 2,
        "uncovered": 1,
        "checked": 4,
    }
    assert (whole["relation"], whole["at_least"], whole["precision"]) == (None, None, 0.5)
    assert whole["confidence"] == 0.675  # Niger, Mali, 4 and 5; no value of "nowhere" or of subject 2 is known
    assert "*** All ***" in shown


@pytest.mark.parametrize(("split", "known"), [("train", "Spain"), ("val", "Malaysia"), ("dev", "Malaysia")])
def test_a_labelled_split_of_the_base_s_edition(command: Command, split: str, known: str) -> None:
    written(
        Path("kb"),
        [
            fact(0, "country-borders", "Spain", 0.9, subject="Andorra", subject_id=None, object_id="Q29"),
            fact(1, "country-borders", "Malaysia", 0.9, subject="Brunei", subject_id="Q921", object_id="Q833"),
        ],
        edition="mini",
    )
    _, said = command.done("audit", "kb", "--known", split, "--out", "marked.csv")
    lacking = "Brunei (Q921)" if known == "Spain" else "Andorra"  # which is not in the split, with a QID or without
    assert f"does not cover 1 subject, whose facts are therefore not called new: {lacking}\n" in said
    marks = pl.read_csv("marked.csv")
    assert marks.filter(pl.col("mark") == "known")["object"].to_list() == [known]
    assert len(marks) == 2


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (lambda: gzip.compress(triples())[:-20], "known cannot be read: Compressed file ended"),
        (lambda: bz2.compress(b"".join(dumped()))[:-20], "known cannot be read: Compressed file ended"),
        (lambda: triples()[:-9], "known ends in the middle of a line"),
        (lambda: table()[:-5], "known, line 6: has no line end"),
        (lambda: table()[:-1], "known, line 6: has no line end"),
        (lambda: table().replace(b",Q1\n", b"\n"), "known, line 6: 2 values where the header names 3"),
        (lambda: b"".join(dumped()[:-1]), "known ends before the closing bracket"),
        (lambda: b"".join(dumped())[:-30], "known, line 4: no entity of Wikidata's JSON"),
        (lambda: b"[\n{}\n]\n", "known, line 2: no entity of Wikidata's JSON"),
        (
            lambda: b'[\n{"labels":' + b"[" * 100_000 + b"\n]\n",
            "known, line 2: no entity of Wikidata's JSON (nested too deeply)",
        ),
        (lambda: b"", "known holds no statement"),
        (lambda: b"subject,relation,object\n", "known holds no statement"),
        (lambda: b'{"SubjectEntity": "a", "Relation": "children", "completions": ["2"]}\n', "known holds completions"),
        (lambda: b"\x00\xff" * 99, "known"),
    ],
)
def test_a_file_that_is_cut_off_is_one_sentence(run: Command, content: Callable[[], bytes], told: str) -> None:
    Path("known").write_bytes(content())
    error = run.fails("--known", "known", "--out", "marked.csv")
    assert (error.count("\n"), told in error) == (1, True), error
    assert not Path("marked.csv").exists()


def test_nothing_known_is_said(run: Command) -> None:
    Path("known").write_text("subject,property,object\nQ77,P47,Q78\n")
    told = run.done("--known", "known")[1]
    assert "nothing is known of the subjects of this base" in told
    assert "these relations, so their facts are not called new: children\n" in told
    found = json.loads(run.done("--known", "known", "--json")[0])
    assert {row["new"] for row in found["known"]} == {0}
    assert found["uncovered"] == ["subject 0 (Q1)", "subject 2 (Q3)"]


@pytest.mark.parametrize(
    "known",
    [
        f"<{WD}entity/Q10> <http://www.w3.org/2002/07/owl#sameAs> <{WD}entity/Q99> .\n"
        f"<{WD}entity/Q1> <{WD}prop/direct/P47> <{WD}entity/Q99> .\n",
        f"<{WD}entity/Q1> <{WD}prop/direct/P47> <{WD}entity/Q98> .\n"
        f"<{WD}entity/Q98> <http://www.w3.org/2002/07/owl#sameAs> <{WD}entity/Q10> .\n",
        '[\n{"id": "Q1", "claims": {"P47": [{"mainsnak": {"datavalue": {"value": {"id": "Q99"}}}}]}},\n'
        '{"id": "Q99", "claims": {}, "redirects": {"from": "Q10", "to": "Q99"}}\n]\n',
    ],
    ids=["the fact's", "the known one", "JSON"],
)
def test_an_object_that_was_merged_is_the_item_that_it_became(run: Command, known: str) -> None:
    Path("known").write_text(known)
    run.done("--known", "known", "--out", "marked.csv")
    marked = pl.read_csv("marked.csv", infer_schema=False)
    assert dict(marked.filter(subject="subject 0").select("object", "mark").rows())["Niger"] == "known"


def test_a_file_that_has_nothing_of_a_relation_does_not_cover_it(run: Command) -> None:
    Path("known").write_text("subject,property,object\nQ1,P47,Q10\n")
    told = run.done("--known", "known", "--out", "marked.csv")[1]
    assert "these relations, so their facts are not called new: children\n" in told
    found = marks(Path("marked.csv"))
    assert (found["subject 0", "4"], found["subject 0", "Mali"]) == ("not covered", "new")


def test_a_dump_covers_an_entity_without_statements(run: Command) -> None:
    claims: tuple[Any, ...] = ([], {})
    lines = [json.dumps({"id": f"Q{at}", "claims": each}) for at, each in enumerate(claims, start=1)]
    Path("known").write_text("[\n" + ",\n".join(lines) + "\n]\n")
    run.done("--known", "known", "--out", "marked.csv")
    assert {value for (name, _), value in marks(Path("marked.csv")).items() if name != "subject 2"} == {"new"}


AREAS = {
    "100": "known",
    "101.01": "known",
    "2.5": "contradicting",
    "7": "contradicting",
    "12": "not covered",
    "13": "known",
}
"""Facts about Q1 and so on in km2, as what is known of them marks them."""
GIVEN = [("10000", "Q35852"), ("39", "Q232291"), ("2.5", "Q35852"), ("8", ""), ("12", "Q999"), ("13", "Q712226")]
"""Known of them: hectares, square miles, no unit, an item that is no unit of area, km2."""


def with_units(form: str) -> str:
    if form == "json":
        values = [{"amount": f"+{n}", "unit": f"{WD}entity/{item}" if item else "1"} for n, item in GIVEN]
        claims = [{"P2046": [{"mainsnak": {"datavalue": {"value": value}}}]} for value in values]
        return "\n".join(
            ["[", *(json.dumps({"id": f"Q{at}", "claims": one}) + "," for at, one in enumerate(claims, 1)), "]\n"]
        )
    named = {"": "", "Q35852": " hectares", "Q232291": " sq mi", "Q999": " seats", "Q712226": " km²"}
    written = [f"{n}{named[item] if form == 'words' else item.replace('Q', 'U')}" for n, item in GIVEN]
    return "subject,property,object\n" + "".join(f"Q{at},P2046,{value}\n" for at, value in enumerate(written, 1))


@pytest.mark.parametrize("form", ["json", "items", "words"])
def test_known_numbers_are_compared_in_the_unit_of_the_facts(command: Command, form: str) -> None:
    written(Path("kb"), [fact(at, "area", number, 0.9, literal=number) for at, number in enumerate(AREAS)])
    Path("known").write_text(with_units(form))
    _, said = command.done("audit", "kb", "--known", "known", "--out", "marked.csv")
    marked = {row["object"]: row["mark"] for row in pl.read_csv("marked.csv", infer_schema=False).iter_rows(named=True)}
    assert marked == AREAS
    assert "by mistake: 1 of P2046 in km2" in said
    assert "left out: 1 of P2046" in said


@pytest.mark.parametrize("value", ["1" * 31 + " ha", "1" * 31 + "U35852", "ıx century", "5 mı²", "1e9999 ha", "NaN ha"])
def test_no_known_value_ends_an_audit(command: Command, value: str) -> None:
    written(Path("kb"), [fact(at, "area", area, 0.9, literal=area) for at, area in enumerate(("100", "1.5"))])
    Path("known").write_text(f'subject,property,object\nQ1,P2046,100\nQ2,P2046,"{value}"\n')
    command.done("audit", "kb", "--known", "known", "--out", "marked.csv")
    marked = {row["object"]: row["mark"] for row in pl.read_csv("marked.csv", infer_schema=False).iter_rows(named=True)}
    assert marked["100"] == "known"
    assert marked["1.5"] != "known"


def test_triples_carry_no_units_and_a_warning_says_so(command: Command) -> None:
    written(Path("kb"), [fact(0, "area", "100", 0.9, literal="100"), fact(0, "children", "4", 0.9, literal="4")])
    lines = [f'<{WD}entity/Q1> <{WD}prop/direct/{name}> "+{n}"' for name, n in (("P2046", 10000), ("P1971", 4))]
    Path("known.nt").write_text("".join(f"{line} .\n" for line in lines))
    _, said = command.done("audit", "kb", "--known", "known.nt", "--out", "marked.csv")
    assert pl.read_csv("marked.csv").sort("property")["mark"].to_list() == ["known", "contradicting"]
    assert said.count("known numbers without a unit") == 1
    assert "1 of P2046 in km2" in said
    assert "P1971" not in said  # children are counted


def test_a_count_may_have_an_item_that_is_no_unit_of_measure(command: Command) -> None:
    written(
        Path("kb"), [fact(0, "capacity", "500", 0.9, literal="500"), fact(1, "capacity", "500", 0.9, literal="500")]
    )
    Path("known").write_text("subject,property,object\nQ1,P1083,500U41795\nQ2,P1083,500U11573\n")  # seats; metres
    command.done("audit", "kb", "--known", "known", "--out", "marked.csv")
    assert pl.read_csv("marked.csv").sort("subject_id")["mark"].to_list() == ["known", "not covered"]


LONG = ("9" * 31, "9" * 31 + "U35852", "9" * 28 + " ha", "0." + "1" * 59, "1E+100000000", "NaN", "Infinity", "9" * 5000)


@pytest.mark.parametrize("value", LONG, ids=lambda value: value[:30])
def test_known_numbers_of_many_digits_are_compared_or_left_out(value: str, command: Command) -> None:
    written(Path("kb"), [fact(0, "area", number, 0.9, literal=number) for number in ("5", "0.01", "9" * 30)])
    Path("known.csv").write_text(f"subject,property,object\nQ1,P2046,{value}\n")
    command.done("audit", "kb", "--known", "known.csv", "--out", "marked.csv")
