"""Tables that make no sense are refused in one sentence, which names the setting."""

import math
from typing import Any

import pytest
from opened import part

from lmkbc import InputError, Rule
from lmkbc.recipe import RecipeFile
from lmkbc.settings import checked
from lmkbc.testing import build
from lmkbc.train.training import Masking

TOP = {"rule": "top-k", "k": 1}
CUT = {"rule": "cutoff", "threshold": 0.5}
FILTERED = {"rule": "source-filter", "inner": CUT, "source": ["a"]}

RULES: list[tuple[dict[str, Any], str]] = [
    ({"rule": "cutof", "threshold": 1.0}, "did you mean 'cutoff'"),
    ({"rule": "cutoff", "treshold": 1.0}, "did you mean 'threshold'"),
    ({"rule": "cutoff"}, "rule cutoff needs threshold: give it a value"),
    ({"threshold": 1.0}, "needs rule = NAME"),
    ({"rule": "cutoff", "threshold": "high"}, "give a number"),
    ({"rule": "cutoff", "threshold": True}, "give a number"),
    ({"rule": "cutoff", "threshold": math.nan}, "setting 'threshold' is nan: give a number"),
    ({"rule": "top-k", "k": 1.5}, "give a whole number"),
    (
        {"rule": "sticky", "threshold": 0.1, "ratio": 0.5, "reference": "best"},
        "'best': known are: previous, threshold",
    ),
    (
        {"rule": "abstention-threshold", "threshold": 0.1, "evidence": "mood", "inner": {"rule": "top-k", "k": 1}},
        "known are: draws, existence",
    ),
    ({"rule": "abstention-threshold", "threshold": 0.1, "inner": "top-k"}, "a table with its own rule"),
    ({"rule": "calibrated", "inner": {"rule": "ball"}}, "a rule that keeps candidates"),
    (
        {"rule": "calibrated", "inner": {"rule": "expected-f1"}, "label_priors": {"a": "b"}},
        "'label_priors.a' is 'b': give a number",
    ),
    ({**FILTERED, "source": []}, "source of rule source-filter is empty: name at least one source"),
    (
        {"rule": "verified", "inner": TOP, "combine": "sum"},
        "'combine' is 'sum': known are: mean, product, veto",
    ),
    ({"rule": "duke26/modal", "weights": {"a": "b"}}, "'weights.a' is 'b': give a number"),
    ({"rule": "corroborated", "source": "a", "corroborating": "b", "inner": CUT}, "in the code of two systems"),
    ({"rule": "verified"}, "rule verified needs inner: give it a value"),
    (
        {"rule": "duke26/fused", "weights": {}, "probed": 0.3, "threshold": 0.4, "probes": 3},
        "'probes' is 3: give a string",
    ),
    ({"rule": "relative", "ratio": 0.5, "best": 0.3}, "no setting 'best' any more: write it as threshold"),
    ({"rule": "relative", "ratio": 0.5, "min_score": 0.3}, "threshold says what the best candidate has to score"),
    ({"rule": "quorum", "models": 2, "min_score": 0.3}, "no setting 'min_score' any more: write it as threshold"),
    ({"rule": "source-filter", "sources": ["a"]}, "no setting 'sources' any more: write it as source"),
    ({"rule": "agreement", "inner": CUT, "alone": CUT}, "no setting 'alone' any more: write it as then"),
]

WORDS: list[tuple[dict[str, Any], str]] = [
    ({"url": "https://a.org/x"}, "no setting 'url' any more: write it as path"),
    ({"fields": {"question": "q"}}, "no setting 'fields' any more: write it as slots"),
    ({"words": [{"step": "account"}]}, "no setting 'words[0].step' any more: write parts = ['TABLE/STEP']"),
    ({"format": "examples", "path": "a", "slots": {"asked": "q"}}, "slots names ['asked']: give those of"),
]
STYLES: list[tuple[dict[str, Any], str]] = [
    ({"listng": "json"}, "no setting 'listng': did you mean 'listing'"),
    ({"form": "haiku"}, "setting 'form' is 'haiku'"),
    *(({name: "x"}, f"has no setting {name!r} any more: {reason}") for name, reason in part("prompt").REMOVED.items()),
    ({"task": "List the {{ objct_type }}"}, "task reads {{ objct_type }}: did you mean 'object_type'"),
    ({"block": "{{ subjct }}"}, "block reads {{ subjct }}: did you mean 'subject'"),
    (
        {"block": "{{ subject }}{cue}"},
        "block has '{cue}': it is a Jinja2 template, so write {{ cue }}, or {{ '{' }} for",
    ),
    ({"block": "{{ subject "}, "block: '{{ subject ' is no Jinja2 template"),
    ({"block": "{% set x = subject %}{{ x }}"}, "holds another statement than if and for"),
    ({"block": "{{ subject * 3 }}"}, "'*' is not allowed"),
    ({"block": "{{ subject.__class__ }}"}, "cannot be filled"),
    ({"block": "{{ subject.partition(' in ')[3] }}"}, "cannot be filled"),
    ({"block": "{{ subject | nothing }}"}, "cannot be filled: No filter named 'nothing'"),
    ({"block": "Who?"}, "block is 'Who?': it names no subject"),
    ({"ask": "Who?"}, "ask is 'Who?': it names no subject, as one of asked, cloze, question, subject does"),
    ({"ask": "{subject"}, "ask has '{subject': it is a Jinja2 template, so write {{ subject }}"),
    ({"ask": "Of { subject }"}, "ask has '{ subject }': it is a Jinja2 template, so write {{ subject }}"),
    ({"ask": "Of subject}"}, "ask is 'Of subject}': it names no subject"),
    (
        {"task": 'List as {"names": []} each {object_type.'},
        "task has '{object_type': it is a Jinja2 template, so write {{ object_type }}",
    ),
    ({"ask": "In {{ s }}", "steps": [{"name": "s", "items": ["north"]}]}, "ask is 'In {{ s }}': it names no subject"),
    ({"ask": "{{ s }}", "steps": [{"name": "s", "ask": "{subject"}]}, "step 's' has '{subject'"),
    ({"answer": "It is {{ anser }}"}, "answer reads {{ anser }}: did you mean 'answer'"),
    ({"answer": "It is so"}, "answer is 'It is so': it needs {{ answer }} once"),
    ({"null": '{"objects": []}'}, "an answer of listing 'schema', and listing is 'json': write null and task for"),
    ({"stop": ["."]}, "stop ends a text that a model goes on with, and form 'chat' has none"),
    ({"form": "completion", "stop": ["###"]}, "stop ['###'] never occurs: what follows an answer is"),
    ({"form": "completion", "stop": ["\n", ""]}, "stop holds an empty text"),
    ({"form": "completion", "listing": "line", "stop": ["\n"]}, "stop '\\n' occurs in listing"),
    ({"form": "completion", "null": "n.a.", "answer": "{{ answer }}.", "stop": ["."]}, "stop '.' occurs in null"),
    ({"form": "completion", "answer": "Sure.\n{{ answer }}", "stop": ["\n"]}, "stop '\\n' occurs in answer"),
    ({"form": "completion", "separator": " | "}, "stop ['\\n'] never occurs"),
]

SHOTS: list[tuple[dict[str, Any], str]] = [
    ({"method": "best"}, "method"),
    ({"k": -1}, "negative"),
    ({"empty": 2.0}, "[0, 1]"),
    ({"n": 3}, "no setting"),
]
LIMITS = [
    ({name: value}, f"{name} is {value}: give a finite number above 0")
    for name in ("timeout", "total_wait", "requests_per_minute")
    for value in (math.inf, -1.0, *([0.0] if name != "total_wait" else []))
] + [({name: 3}, "write total_wait, the seconds that retries may take") for name in ("attempts", "first_wait")]
ASKED = {"cloze": "{subject} {mask}"}
TYPED = ASKED | {"component": "fang22/precondition", "type": "Q5"}
PROBES: list[tuple[dict[str, Any], str]] = [
    ({"preconditions": {"Thing": [table]}}, said)
    for table, said in (
        (ASKED, "answers to compare: give some"),
        (ASKED | {"type": "Q5"}, "'fang22/precondition' has it"),
        (TYPED | {"answers": ["a", "b"], "vetoes": ["a"]}, "answers to compare"),
        (ASKED | {"answers": ["a"], "vetoes": ["a"]}, "fewer than two words"),
        (ASKED | {"answers": ["a", "b"], "vetoes": ["c"]}, "some of the answers, not all"),
        (ASKED | {"answers": ["a", "b"]}, "needs clozes or vetoes"),
        (ASKED | {"answers": ["a", "b"], "vetoes": [""]}, "give top_k or min_prob"),
        (ASKED | {"answers": ["a", "b"], "min_prob": 1.0, "vetoes": ["a"]}, "below 1"),
        (TYPED | {"cloze": "{subject}", "clozes": ["{subject} {mask}"]}, "each exactly once"),
        ({"answers": ["a", "b"], "vetoes": ["a"]}, "cloze"),
        (ASKED | {"required": True}, """any more: write vetoes = [""], where "" stands for no answer"""),
        *(
            (ASKED | {name: 1}, "'li22/precondition' has it")
            for name in ("neutral", "times", "decisive", "forms", "drawn")
        ),
        (
            TYPED | {"top_k": "ten", "vetoes": [""]},
            "'preconditions.Thing[0].top_k' is 'ten': give a whole number",
        ),
    )
]
MASKS: list[tuple[dict[str, Any], str]] = [
    ({"policy": text}, "the mask policy is") for text in ("subject", "object+x", "random+1", "")
]
POOLS: list[tuple[dict[str, Any], str]] = [
    ({"wieghts": {}}, "did you mean 'weights'"),
    ({"per": "vote"}, "setting 'per' is 'vote'"),
    ({"weights": {"m": -1}}, "weight of 'm'"),
]


@pytest.mark.parametrize(
    ("kind", "table", "said"),
    [
        (kind, *row)
        for kind, rows in (
            (Rule, RULES),
            ("prompt", STYLES),
            ("shots", SHOTS),
            ("source", WORDS),
            ("pool", POOLS),
            ("limits", LIMITS),
            ("probe", PROBES),
            (Masking, MASKS),
        )
        for row in rows
    ],
)
def test_what_makes_no_sense_is_told(kind: Any, table: dict[str, Any], said: str) -> None:
    if kind == "source":
        source = {"licence": "x", "credit": "x", "files": [table]}
        kind, table = RecipeFile, {"description": "x", "generate": [{}], "select": {}, "source": source}
    with pytest.raises(InputError) as error:
        build(table) if kind is Rule else part(kind, **table) if isinstance(kind, str) else checked(kind, table, "it")
    assert said in str(error.value).replace(f"{kind}.", "").replace("source.files[0].", "")
