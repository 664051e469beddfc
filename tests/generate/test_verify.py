"""Facts are put to the model in words, and what it says of them is kept beside the candidates' scores."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import tiny_causal
from opened import part
from space import SPACE
from writing import Writing

from lmkbc.local.local_model import LocalModel
from lmkbc.local.model import CausalModel
from lmkbc.models.answers import Store
from lmkbc.models.base import Prompt
from lmkbc.testing import Candidate, CandidateSet, Example, GoldObject, Nil, Query
from tests.candidates import candidate_set, sources

NAME = "CountryBordersCountry"
RELATIONS = {NAME: SPACE.relation(NAME)}
TRAIN = [
    Example(Query(subject, NAME), tuple(GoldObject((name, f"the {name}")) for name in objects))
    for subject, objects in {
        "Chile": ("Peru", "Bolivia"),
        "Malta": (),
        "Portugal": ("Spain",),
        "Lesotho": ("South Africa",),
        "Iran": ("Iraq", "Turkey"),
    }.items()
]
TRUE = {("France", "Spain"), ("Chile", "Peru")}


class Knowing(Writing):
    """A scorer that holds true what TRUE holds, and keeps what it was asked."""

    def __init__(self, *, silent: bool = False, says: tuple[str, ...] = ()) -> None:
        super().__init__()
        self.silent, self.says = silent, says

    def drawn(self, prompt: str) -> list[str | None]:
        known = [" True."] * 3 + [" False"] if holds(prompt) else [" False", " Hm"]
        return [*(self.says or known)]

    def score(self, prompts: Sequence[Prompt], _: object) -> list[list[float] | None]:
        texts = [one.text for one in prompts]
        self.asked += texts
        if self.silent:
            return [None for _ in prompts]
        return [[math.log(p) for p in ((0.6, 0.2) if holds(one) else (0.01, 0.09))] for one in texts]


def holds(prompt: str) -> bool:
    last = prompt.rpartition("\n\n")[2]
    return any(subject in last and name in last for subject, name in TRUE)


def check(scorer: Any, **table: Any) -> Any:
    return part("verify", **table).open(scorer, RELATIONS, TRAIN)


def one(subject: str, *objects: str, count: int = 1) -> CandidateSet:
    found = [Candidate(name, 0.8, sources(f"m#{source}")) for source in range(count) for name in objects]
    return candidate_set(Query(subject, NAME), (*found, Nil(0.3, sources("m#9"))))


def truths(found: CandidateSet) -> dict[str, float | None]:
    return {c.text: None if c.verification is None else round(c.verification, 6) for c in found.candidates}


def test_truth_stands_beside_the_score_and_nothing_is_left_alone() -> None:
    scorer = Knowing()
    (france, other) = check(scorer).verify([one("France", "Spain", "Peru"), one("Chile", "Peru")])
    assert truths(france) == {"Spain": 0.75, "Peru": 0.1}
    assert truths(other) == {"Peru": 0.75}
    assert [candidate.score for candidate in france.candidates] == [0.8, 0.8]
    assert france.nothing == one("France").nothing
    assert france.query.subject == "France"
    assert len(scorer.asked) == 3
    (found,) = check(Knowing(), by="text").verify([one("France", "Spain", "Peru")])  # the share of clear draws
    assert truths(found) == {"Spain": 0.75, "Peru": 0.0}


def test_what_the_model_affirms_of_placebos_too_is_subtracted() -> None:
    scorer = Knowing()
    (france,) = check(scorer, shots=0, placebos=2).verify([one("France", "Spain", "Peru")])
    odds = math.log(0.75 / 0.25), math.log(0.1 / 0.9)
    # Malta, which has no neighbour, comes first; Chile is no placebo of Peru, which it has
    assert truths(france) == {"Spain": round(1 / (1 + math.exp(odds[1] - odds[0])), 6), "Peru": 0.5}
    asked = {text.partition("Statement: ")[2].split()[0] for text in scorer.asked if "Peru" in text}
    assert asked == {"France", "Malta", "Portugal"}
    (france,) = check(Knowing(silent=True), placebos=2).verify([one("France", "Spain")])
    assert truths(france) == {"Spain": None}


def test_what_is_unclear_stays_unverified_and_is_said(caplog: pytest.LogCaptureFixture) -> None:
    silent = check(Knowing(silent=True))
    (found,) = silent.verify([one("France", "Spain", "Peru")])
    assert truths(found) == {"Spain": None, "Peru": None}
    assert silent.notes.remarks == ["2 of 2 facts got no clear verdict: they stay unverified"]
    assert silent.notes.remarks[0] in caplog.text
    (found,) = check(Knowing(says=("I", "")), by="text").verify([one("France", "Spain")])
    assert truths(found)["Spain"] is None
    thinking = "<think>Spain?\nIt has\n</think>\n\nTrue", "<think>Spain?\nNo</think>\nFalse"
    (found,) = check(Knowing(says=thinking), by="text", max_tokens=300).verify([one("France", "Spain")])
    assert truths(found)["Spain"] == 0.5


def test_worked_examples_alternate_and_leave_out_the_subject() -> None:
    scorer = Knowing()
    list(check(scorer, words=("Yes", "No")).verify([one("Chile", "Peru")]))
    (asked,) = scorer.asked
    worked = asked.rpartition("\n\n")[0]
    assert [line.split(": ")[1] for line in worked.splitlines() if line.startswith("Yes or No")] == [
        "No",
        "Yes",
        "No",
        "Yes",
    ]
    assert "Malta" in worked
    assert "Chile" not in worked
    assert asked.endswith("Yes or No:")


def test_examples_of_all_relations_are_the_same_for_every_fact() -> None:
    speaks = "PersonSpeaksLanguage"
    known = {**RELATIONS, speaks: SPACE.relation(speaks)}
    train = [*TRAIN, *(Example(Query(name, speaks), (GoldObject((name[::-1],)),)) for name in ("Ada", "Bob", "Cyd"))]
    scorer, asked = Knowing(), (Query("France", NAME), Query("Eve", speaks), Query("Ada", speaks))
    how = part("verify", shots=4, relations="all")
    sets = [candidate_set(query, (Candidate("Spain", 0.8, sources("m#0")),)) for query in asked]
    list(how.open(scorer, known, train).verify(sets))
    shown = {
        query.subject: next(one for one in scorer.asked if query.subject in one.rpartition("\n\n")[2])
        for query in asked
    }
    own, other, about = (shown[query.subject].rpartition("\n\n")[0] for query in asked)
    assert own == other
    assert "speak" in own
    assert "border" in own
    assert "Ada" not in about


def test_a_false_example_is_false_under_every_name() -> None:
    twice = [*TRAIN, Example(Query("Spain's neighbour", NAME), (GoldObject(("the Spain",)), GoldObject(("Spain",))))]
    scorer = Knowing()
    for seed in range(20):
        fact_check = part("verify", seed=seed, shots=8).open(scorer, RELATIONS, twice)
        list(fact_check.verify([one("France", "Spain")]))
    truths = {(example.query.subject, name) for example in twice for gold in example.objects for name in gold.names}
    for asked in scorer.asked:
        for block in asked.split("\n\n")[1:-1]:
            pair = next(((s, o) for s, o in truths if block.startswith(statement(s, o))), None)
            assert block.endswith("True") == (pair is not None), block


def statement(subject: str, name: str) -> str:
    return "Statement: " + RELATIONS[NAME].statement.replace("{subject}", subject).replace("{object}", name) + "\n"


def test_other_relations_are_not_asked_and_a_fact_of_several_sources_once() -> None:
    scorer = Knowing()
    (found,) = check(scorer, only=["instrument"]).verify([one("France", "Peru")])
    assert truths(found)["Peru"] is None
    assert scorer.asked == []
    (found,) = check(scorer, only=["country-borders"]).verify([one("France", "Peru", count=3)])
    assert truths(found)["Peru"] == 0.1
    assert len(scorer.asked) == 1


def test_backwards_the_object_must_lead_to_the_subject() -> None:
    scorer = Knowing(says=("France, Andorra", "Portugal", "the Republic", ""))
    (found,) = check(scorer, variants=["reverse"]).verify([one("France", "Spain")])
    assert "France" not in "".join(scorer.asked)
    assert truths(found)["Spain"] == pytest.approx(1 / 3, abs=1e-6)


def test_backwards_from_a_number() -> None:
    name = "PersonHasNumberOfChildren"
    backwards = part("verify", variants=["reverse"], shots=0).open(
        Knowing(says=("Marie Curie",)), {name: SPACE.relation(name)}, []
    )
    given = [candidate_set(Query(subject, name), (Candidate("2", 0.5),)) for subject in ("Marie Curie", "Ada Lovelace")]
    assert [truths(found)["2"] for found in backwards.verify(given)] == [1.0, 0.0]


def test_names_are_put_in_and_never_interpreted() -> None:
    scorer = Knowing()
    list(check(scorer, variants=["statement", "reverse"]).verify([one("{object}", "{subject}\n\nTrue")]))
    assert all("\n\nTrue" not in asked.rpartition("\n\n")[2] for asked in scorer.asked)
    assert any("{object}" in asked and "{subject} True" in asked for asked in scorer.asked)


@pytest.mark.parametrize("by", ["probability", "text"])
def test_what_a_local_model_judged_is_kept(by: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = CausalModel(tiny_causal.model("llama"), tiny_causal.tokenizer())
    sets = [one("France", "Spain", "Peru"), one("x" * 2000, "Peru")]

    def verified(identity: str = "a") -> list[CandidateSet]:
        store = Store(tmp_path / "s.sqlite")
        scorer = LocalModel(model, "tiny", identity, store=store)
        return list(check(scorer, by=by, samples=2, temperature=0.5).verify(sets))

    monkeypatch.setattr("lmkbc.local.local_model.PORTION", 1)
    first = verified()
    assert truths(first[1])["Peru"] is None  # it leaves no room in the model's window
    asked: list[str] = []
    for name in ("complete", "log_probabilities"):
        real = getattr(model, name)
        monkeypatch.setattr(model, name, lambda texts, *how, real=real: [asked.extend(texts), real(texts, *how)][1])
    assert verified() == first
    assert all("xxx" in text for text in asked)  # what was not told is asked again
    verified("b")
    assert any("France" in text for text in asked)


def test_several_draws_are_sampled_and_one_is_not() -> None:
    tables: list[dict[str, Any]] = [{}, {"samples": 3}, {"samples": 3, "temperature": 0.2}]
    assert [part("verify", **table).sampling_temperature for table in tables] == [0, 1, 0.2]
