"""The time to read a text grows no faster than the text, in any shape that is built of the reader's own tokens."""

import time
from itertools import cycle

import pytest
from opened import part
from space import SPACE

from lmkbc.generate.reply import candidates
from lmkbc.testing import Query, Reply

UNITS = (
    "5 mi 7 ha ¦\n\na¦N/A; A ¦\\text{A ¦<details><summary>thought</summary>¦(a, ¦A\n\n¦ ¦\n¦\t¦ \n¦\u00a0¦a¦A¦1¦"
    "é¦İ¦中¦.¦,¦;¦:¦-¦*¦_¦#¦>¦<¦`¦'¦\"¦(¦)¦[¦]¦{¦}¦$¦\\¦/¦&¦=¦~¦+¦^¦%¦!¦?¦@¦“¦”¦«¦…¦—¦→¦²¦½¦0¦9¦a ¦A ¦1 ¦a, ¦A, ¦"
    "A; ¦A and ¦A B ¦A. ¦A.\n¦a\n¦- a\n¦1. A\n¦A: ¦A (¦(A ¦(A) ¦[A] ¦{A} ¦\"A\", ¦'A', ¦`A` ¦**A** ¦*A* ¦_A_ ¦**¦"
    "__¦***¦~~¦~~A¦$$¦$A$¦\\[¦\\(¦\\text{¦\\text{A} ¦\\boxed{¦\\boxed{A}¦\\begin{tabular}{¦\\frac{1}{2}¦^{¦^{2}¦"
    "<think>¦</think>¦<think>a¦<answer>¦</answer>¦<answer>A¦<tool_call>¦im_start¦>think ¦channel¦>final¦"
    ">analysis<¦message¦start¦>assistant¦<role>¦<!--¦<!-- a -->¦<details>¦<details open>¦<summary>¦<b>¦<b¦</b>¦"
    "<sup>¦<sup>2</sup>¦<sub> ¦<br>¦<br ¦<table>¦<tr><td>¦<tr><td>A</td>¦<td>¦</td><td>¦<li>¦<li>A</li>¦"
    '<a href="¦<a href="x">¦<x name="¦<x a="b" ¦<li>A¦&lt;¦&lt;a¦&#¦&#65;¦&amp;¦```¦```json\n¦'
    "```thinking\n¦:::¦:::thinking\n¦finish[¦finish[A]¦TextBlock(text=\"¦content='¦user¦[INST]¦[/INST]¦[think]¦"
    "[cite_start]¦[url=¦[^1]¦[1]¦[1, ¦[A](¦[A](http://x)¦![¦![a](¦[[A¦[[A]]¦[A¦B]]¦【1】¦【¦(http://¦http://x ¦"
    'http://x(¦<http://¦\\u003c¦\\n¦\\"¦\\u00e9¦Ġ¦ĠA¦<0x41>¦\u001b[¦\ue200¦:smile: ¦✅ A\n¦❌ A\n¦[x] A\n¦[ ] A\n¦'
    " A ¦ B ¦ B\n¦+---+\n¦A\tB\n¦A,B\n¦A;B\n¦A  B  C\n¦== ==\n¦a: b\n¦city: Paris\n¦Answer: ¦ANSWER: A\n¦"
    "The answer is ¦the answer is 1 ¦#### A\n¦# A\n¦## ¦Confidence: 9\n¦Sources: ¦Note: a\n¦Thus, ¦"
    "So the answer: ¦user\n¦\nuser:\n¦assistant:\n¦assistant final¦assistantfinal¦analysis¦commentary to=¦"
    'to=self¦Human: ¦Q: ¦{"a": ¦{"a": "b"}, ¦[{"a":¦["A", ¦"Chile; "¦"Chile", "¦[a,//¦[a,#¦/*¦'
    "/* a */¦\"a\"//¦[answer([¦[a(b=[¦{'a': ('b', ¦((¦[[¦{{¦([{¦\"A, \"¦'A' and ¦\"A\" and ¦1,,,,x¦1,000,¦1,000 ¦"
    "1.000.¦1 000 ¦12 km2 ¦12 km (¦1-¦1 - ¦1 to 2 ¦1 million ¦10^9 ¦10^¦1e9 ¦×10^¦5 ft 11 in ¦5' ¦5'11\" ¦$5 ¦"
    "€5 million ¦5 °C ¦5%, ¦1/2 ¦1 1/2 ¦twenty ¦hundred thousand ¦half a million ¦a dozen ¦and a half ¦"
    "between 1 and 2 ¦minus 5 ¦(5 mi) ¦[5] ¦± 5 ¦1985 ¦1985, ¦1985-¦1985–¦in 1985 ¦since 1985 to ¦12 May 1985, ¦"
    "May ¦May 1985 ¦12.05.1985 ¦1980s ¦19th century ¦c. 1985 ¦44 BC ¦XIX century ¦mid-¦It borders Chile. ¦"
    "It borders ¦borders Chile and ¦Chile and Peru to the north¦to the ¦north, ¦to the north and ¦"
    "It shares a border with ¦, which ¦which is A, ¦of a heart attack ¦in the hospital in ¦in a ¦"
    "at the age of 9 ¦The A and B ¦Kering, the French ¦A-A ¦A'¦d'A ¦A & B, ¦A, Jr., ¦A / B ¦A/B/¦A · B¦A → ¦"
    "A – b ¦A (b) ¦A (b ¦A, b ¦, but ¦; ¦... wait, no ¦wait, ¦sorry, ¦however ¦not ¦none ¦no ¦never ¦None. ¦"
    "N/A; ¦unknown\n¦I don't know. ¦I'm sorry, ¦As an AI ¦error: ¦<html ¦<title>¦{\"error\":¦He was a poet. ¦"
    'was born in ¦she is ¦professions include ¦are the capitals ¦best known as ¦*A*, ¦**A**, ¦**A** and ¦"A" ¦'
    "**A:** b\n¦- **A**: b\n¦- A – b\n¦a) A ¦1) A ¦(1) A ¦i. A ¦A1 ¦A₂¦NaCl: ¦H2O: Na, ¦Na (1) ¦2 atoms of ¦"
    "Q298 ¦Q298, ¦P36 ¦_a¦a_b ¦a.b.¦A.B. ¦x×¦1 x 2 ¦5 m ¦5 k ¦from 1 to ¦expanded from 1 ¦total: 5 ¦total ¦"
    "originally had 5 ¦of which 5 ¦including 5 ¦approximately 5 ¦is about ¦<|im_start|>¦<|im_start|>think ¦"
    "<|channel|>¦<|channel|>final¦<|channel|>analysis<|message|>¦[|user|]¦| A | B |\n¦A | B\n¦|-|-|\n¦|¦<|¦"
    "[[A|A]]¦[[A|¦Chile und ¦A, B und C ¦A y B, ¦ و¦A وB، ¦和¦智利和¦智利、¦・¦チリ・¦"
    "チリと¦。¦Wait, ¦. Wait, A. ¦\nCorrection: A¦"
    "Actually, A does not. ¦\nWhich A B? ¦\nQ: ¦\nA: \nQ: A?\n¦"
    "\nSubject: A\n¦\n###\n¦\nA, a b: B¦Thinking Process:\n1. A\n\n¦"
    "好的，用户¦Die Antwort lautet: ¦Es grenzt an ¦Murió en ¦与该国接壤的国家有：¦keine ¦"
    'Es gibt keine, ¦{"detail": "¦<html><h1>¦502 ¦'
    '4万5千¦45 mil ¦mil ¦"A" "B" ¦"A" and ¦\\boxed{{¦{{{¦le A, ¦im Norden an '
).split("¦")
"""What a shape repeats: openings and ends of marks, tags, tables, lists and sentences; separators, numbers, units."""
ENDS = [("", ""), ("Chile", "x"), ("", '"'), ("[", "x")]
"""What stands before and behind it, in turn."""
SHAPES = [(start, unit, end) for unit, (start, end) in zip(UNITS, cycle(ENDS), strict=False)]
RELATIONS = "country-borders", "company-parent", "compound-elements", "area", "autobiography"
SMALL, TIMES, FLOOR, MOST = 8_000, 4, 0.1, 6.0
"""Characters of the short text; how much longer the long one is; seconds that are no matter; most of the ratio."""
SEEN = (
    '![¦finish[¦TextBlock(text="¦<tr><td>¦<tr><td>A</td>¦[a,//¦1,,,,x¦<sup>¦ ¦"Chile; "¦A;B\n¦[url=¦\\(¦'
    "\\text{¦<details>¦5 mi 7 ha ¦\n\na"
).split("¦")
"""Shapes whose time once grew with the square of the text."""


def seconds(relation: str, start: str, unit: str, end: str, length: int, *, tries: int = 2) -> float:
    """Return the processor's seconds that a text of a shape takes, the least of some tries."""
    text, taken = start + unit * (length // len(unit)) + end, list[float]()
    for more in range(tries):
        began = time.process_time()
        query = Query("Some Subject", relation)
        candidates(query, SPACE.relation(relation), part("prompt"), [Reply(text + "." * more)], "m")
        taken.append(time.process_time() - began)
    return min(taken)


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape[1] in SEEN], ids=lambda shape: repr(shape[1]))
def test_a_long_text_of_a_shape_is_read_soon(shape: tuple[str, str, str]) -> None:
    for relation in ("country-borders", "area"):
        seconds(relation, *shape, 100, tries=1)  # patterns are compiled when they are first used
        assert seconds(relation, *shape, SMALL, tries=1) < 2, relation


@pytest.mark.whole
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: repr(shape[1]))
def test_time_grows_no_faster_than_a_text_of_any_shape(shape: tuple[str, str, str], relation: str) -> None:
    def grows() -> float:
        short = seconds(relation, *shape, SMALL)
        return seconds(relation, *shape, SMALL * TIMES) / max(short, FLOOR)

    assert any(grows() < MOST for _ in range(4))


def test_there_are_many_shapes() -> None:
    assert len(SHAPES) >= 200
    assert {*SEEN} <= {unit for _, unit, _ in SHAPES}
