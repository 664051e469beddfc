"""An answer feeds the next question, the same over a server and over a local model; and what a failure comes to."""

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import tiny_causal
from command import Command
from loopback import Body, Loopback, prompt_of
from opened import asks, generators, over_local, recipe_of
from space import MINI, RELATIONS, SPACE

from lmkbc.ask.builder import PromptBuilder
from lmkbc.local.decode import Completion, Decoding
from lmkbc.local.model import CausalModel
from lmkbc.models.answers import Store
from lmkbc.testing import CandidateSet, Query, Run, State

QUERY = Query("Utopia", "CountryBordersCountry")
A, N, U, M = State.ANSWERED, State.ABSTAINED, State.UNPARSED, State.MISSING
Answer = Callable[[str, int], str | None]
"""From a prompt and a draw to what is answered; None where the call fails."""
Ask = Callable[[Answer, dict[str, Any], dict[str, Any]], tuple[list[str], CandidateSet]]
"""From answers, the table prompt and the table sampling to the prompts that were answered and the candidates."""


@cache
def tiny() -> tuple[Any, Any]:
    """A model, whose window alone matters here, and its tokenizer."""
    return tiny_causal.model("llama"), tiny_causal.tokenizer()


class Scripted(CausalModel):
    """A tiny model that answers as told."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(*tiny())
        self.answer = answer
        self.asked: list[str] = []

    def complete(
        self, prompts: Sequence[str], how: Decoding, seeds: Sequence[int] = ()
    ) -> Iterator[tuple[int, list[Completion]]]:
        for place, prompt in reversed([*enumerate(prompts)]):
            self.asked += [prompt] * how.draws
            first = how.first + (seeds[place] if seeds else how.seed)
            yield place, [Completion(self.answer(prompt, draw)) for draw in range(first, first + how.draws)]


def locally(folder: Path) -> Ask:
    def ask(answer: Answer, prompt: dict[str, Any], sampling: dict[str, Any]) -> tuple[list[str], CandidateSet]:
        tables = {"prompt": {"form": "completion", **prompt}, "sampling": sampling, "shots": {"k": 0}}
        model = Scripted(answer)
        asking = PromptBuilder(MINI, RELATIONS, [], asks(tables))
        store = Store(folder / "local.sqlite")
        (found,) = over_local(model, asking, RELATIONS, "m", store=store).generate([QUERY])
        store.close()
        return model.asked, found

    return ask


def served(folder: Path) -> Ask:
    ports = [0]

    def ask(answer: Answer, prompt: dict[str, Any], sampling: dict[str, Any]) -> tuple[list[str], CandidateSet]:
        def said(body: Body) -> str | None:
            return answer(prompt_of(body), body.get("seed", 0))

        def lost(body: Body, _: Body) -> tuple[int, str] | None:
            return (500, "no") if said(body) is None else None

        table = {
            "component": "chat",
            "model": "m",
            "prompt": {"form": "completion", **prompt},
            "sampling": {"seed": 0, **sampling},  # a request for each draw, which tells its number
            "shots": {"k": 0},
            "limits": {"total_wait": 0.0},
        }
        with Loopback(lambda body: said(body) or "", change=lost, port=ports[-1]) as server:
            ports.append(server.port)  # the store tells servers apart
            run = Run(
                workspace=SPACE,
                edition=MINI,
                servers={"base_url": server.url, "store": folder / "served.sqlite"},
            )
            ((_, generator),) = generators(run, recipe_of(table))
            (found,) = generator.generate([QUERY])
        return [prompt_of(body) for body in server.requests], found

    return ask


@pytest.fixture(params=[locally, served])
def ask(request: pytest.FixtureRequest, tmp_path: Path) -> Ask:
    made: Ask = request.param(tmp_path)
    return made


def names(found: CandidateSet) -> dict[str, set[str]]:
    """Candidate -> the draws that name it."""
    draws: dict[str, set[str]] = {}
    for candidate in found.candidates:
        draws.setdefault(candidate.text, set()).update(source.draw for source in candidate.sources)
    return draws


ACCOUNT = {"name": "account", "ask": "Tell of {{ subject }}:"}
TWO = {"ask": "It is told: {{ account }} So, {{ subject }} borders:", "steps": [ACCOUNT]}


def test_each_draw_goes_on_from_its_own_account(ask: Ask) -> None:
    def answer(prompt: str, draw: int) -> str:
        return (
            f" It lies near\x0bChad{draw}." if prompt.startswith("Tell of") else f' ["{prompt.split("near ")[1][:5]}"]'
        )

    asked, found = ask(answer, TWO, {"samples": 2, "temperature": 1.0})
    assert asked[:2] == ["Tell of Utopia:"] * 2
    assert sorted(asked[2:]) == [f"It is told: It lies near Chad{draw}. So, Utopia borders:" for draw in (0, 1)]
    assert names(found) == {"Chad0": {"0"}, "Chad1": {"1"}}
    assert found.draws == (A, A)


def test_a_first_draw_may_have_a_temperature_of_its_own() -> None:
    step = {**ACCOUNT, "temperature": 0.7, "first_temperature": 0.0, "component": "mave26/account"}
    asked: list[tuple[str, float, int]] = []

    def said(body: Body) -> str:
        asked.append((prompt_of(body).split()[0], body["temperature"], body.get("n", 1)))
        return '["Chad"]'

    table = {
        "component": "chat",
        "model": "m",
        "prompt": {**TWO, "steps": [step]},
        "sampling": {"samples": 3, "temperature": 0.2, "first_temperature": 0.9},
        "shots": {"k": 0},
    }
    with Loopback(said) as server:
        run = Run(workspace=SPACE, edition=MINI, servers={"base_url": server.url})
        ((_, generator),) = generators(run, recipe_of(table))
        (found,) = generator.generate([QUERY])
    assert {(word, heat) for word, heat, _ in asked} == {("Tell", 0.0), ("Tell", 0.7), ("It", 0.9), ("It", 0.2)}
    assert found.draws == (A, A, A)
    assert names(found) == {"Chad": {"0", "1", "2"}}


def test_one_account_is_shared_by_all_draws(ask: Ask) -> None:
    steps = [{**ACCOUNT, "samples": 1, "temperature": 0.0}]
    asked, found = ask(
        lambda prompt, draw: "It is old." if prompt.startswith("Tell") else f'["Chad{draw}"]',
        {**TWO, "steps": steps},
        {"samples": 3, "temperature": 1.0},
    )
    assert asked == ["Tell of Utopia:", *["It is told: It is old. So, Utopia borders:"] * 3]
    assert names(found) == {f"Chad{draw}": {str(draw)} for draw in range(3)}


SPAN = {
    "name": "slot",
    "ask": "When did {{ subject }} have borders?",
    "parse_as": "span",
    "each": True,
    "every": 10,
    "samples": 1,
    "temperature": 0.0,
}


def test_the_years_of_a_span_are_asked_for_one_after_the_other_and_answered_once(ask: Ask) -> None:
    said = {"1985 to 1989": '["Chad", "Mali"]', "1990 to 1999": '["Chad"]', "2000": "[]"}

    def answer(prompt: str, draw: int) -> str:
        if prompt.startswith("When"):
            return "From 1985 to 2000."
        return said[prompt.removeprefix("In ").partition(",")[0]] if draw == 0 else "[]"

    prompt = {"ask": "In {{ slot }}, {{ subject }} bordered:", "steps": [SPAN]}
    asked, found = ask(answer, prompt, {"samples": 2, "temperature": 1.0})
    assert asked[0] == "When did Utopia have borders?"
    assert sorted(set(asked[1:])) == [f"In {slot}, Utopia bordered:" for slot in sorted(said)]
    assert found.draws == (A, N)
    assert names(found) == {"Chad": {"0"}, "Mali": {"0"}}


def test_what_is_enumerated_is_picked_from(ask: Ask) -> None:
    prompt = {
        "ask": "Of {{ lands }}, those at {{ subject }}:",
        "steps": [{"name": "lands", "ask": "Lands like {{ subject }}?", "parse_as": "list", "max": 2, "samples": 1}],
    }
    asked, found = ask(
        lambda text, _: "Chad; Mali; Niger" if text.startswith("Lands") else '["Mali"]', prompt, {"temperature": 0.0}
    )
    assert asked == ["Lands like Utopia?", "Of Chad; Mali, those at Utopia:"]
    assert names(found) == {"Mali": {"0"}}


def test_of_an_enumeration_of_nothing_is_told_that_there_is_none_and_each_of_nothing_names_nothing(ask: Ask) -> None:
    step = {"name": "lands", "ask": "Lands like {{ subject }}?", "parse_as": "list"}
    once, each = (
        {"ask": "Of {{ lands }}:", "steps": [step], "null": "none"},
        {"ask": "Of {{ lands }}:", "steps": [{**step, "each": True}]},
    )
    asked, found = ask(lambda text, _: "None" if text.startswith("Lands") else '["Chad"]', once, {})
    assert asked[-1] == "Of none:"
    assert found.draws == (A,)
    asked, found = ask(lambda *_: "None", each, {"max_tokens": 9})
    assert asked == ["Lands like Utopia?"]
    assert found.draws == (N,)


def test_a_gate_that_is_closed_ends_its_own_draw(ask: Ask) -> None:
    prompt = {
        "ask": "{{ subject }} borders:",
        "steps": [{"name": "any", "ask": "Has {{ subject }} borders?", "parse_as": "gate"}],
    }
    gates = ["Yes.", "No.", "Perhaps"]
    asked, found = ask(
        lambda text, draw: gates[draw] if text.startswith("Has") else '["Chad"]',
        prompt,
        {"samples": 3, "temperature": 1.0},
    )
    assert len(asked) == 4
    assert found.draws == (A, N, U)
    assert names(found) == {"Chad": {"0"}}


def test_a_doubt_stands_beside_the_candidates(ask: Ask) -> None:
    doubt = {
        "name": "any",
        "ask": "Has {{ subject }} borders?",
        "parse_as": "existence",
        "samples": 5,
        "temperature": 1.0,
    }
    answers = ["Yes", "No", "no", "I wonder", "No"]
    asked, found = ask(
        lambda text, draw: answers[draw] if text.startswith("Has") else '["Chad"]',
        {"ask": "{{ subject }} borders:", "steps": [doubt]},
        {"samples": 2, "temperature": 1.0},
    )
    assert len(asked) == 7
    assert found.draws == (A, A)
    assert found.existence == pytest.approx(0.25)


@pytest.mark.parametrize("parse_as", ["text", "list", "numbers", "gate"])
def test_a_failed_step_is_a_failed_draw_and_the_next_run_goes_on_from_what_is_kept(ask: Ask, parse_as: str) -> None:
    last = "{{ subject }} borders:" if parse_as == "gate" else "{{ x }}; {{ subject }} borders:"
    prompt = {"ask": last, "steps": [{"name": "x", "ask": "First of {{ subject }}?", "parse_as": parse_as}]}
    sampling = {"samples": 2, "temperature": 1.0}

    def answer(lost: bool) -> Answer:
        def said(text: str, draw: int) -> str | None:
            if text.startswith("First"):
                return None if lost and draw == 1 else {"numbers": "12", "gate": "Yes"}.get(parse_as, f"Chad{draw}")
            return '["Mali"]'

        return said

    _, found = ask(answer(lost=True), prompt, sampling)
    assert found.draws == (A, M)
    assert names(found) == {"Mali": {"0"}}
    asked, found = ask(answer(lost=False), prompt, sampling)
    assert found.draws == (A, A)
    assert len(asked) < 4  # what was kept is not asked again
    asked, again = ask(lambda *_: None, prompt, sampling)
    assert (asked, again) == ([], found)


def test_where_a_doubt_fails_the_query_does(ask: Ask) -> None:
    steps = [
        {"name": "any", "ask": "Has {{ subject }} borders?", "parse_as": "existence", "samples": 3, "temperature": 1.0}
    ]
    _, found = ask(
        lambda text, draw: '["Chad"]' if not text.startswith("Has") else None if draw == 2 else "No",
        {"ask": "{{ subject }} borders:", "steps": steps},
        {},
    )
    assert found.failed
    assert found.draws == (M,)


def test_what_cannot_be_read_is_no_empty_answer(ask: Ask) -> None:
    asked, found = ask(
        lambda *_: "I could not say.", {"ask": "In {{ slot }}:", "steps": [SPAN]}, {"samples": 2, "temperature": 1.0}
    )
    assert len(asked) == 1
    assert found.draws == (U, U)


def test_a_chain_of_three_steps_asks_them_in_order(ask: Ask) -> None:
    steps = [
        {"name": "region", "ask": "Region of {{ subject }}?", "samples": 1},
        {"name": "towns", "ask": "Towns of {{ region }}?", "parse_as": "list", "each": True, "samples": 1},
        {"name": "size", "ask": "Size of {{ towns }} in {{ region }}?", "parse_as": "numbers", "samples": 1},
    ]
    said = {"Region": "North", "Towns": "Alpha; Beta", "Size": "12"}
    asked, found = ask(
        lambda text, _: said.get(text.split()[0], '["Chad"]'),
        {"ask": "{{ towns }} ({{ size }}) of {{ subject }}:", "steps": steps},
        {"temperature": 0.0},
    )
    assert asked[:2] == ["Region of Utopia?", "Towns of North?"]
    assert sorted(asked[2:4]) == ["Size of Alpha in North?", "Size of Beta in North?"]
    assert sorted(asked[4:]) == ["Alpha (12) of Utopia:", "Beta (12) of Utopia:"]
    assert names(found) == {"Chad": {"0"}}


def test_what_is_fed_on_is_never_interpreted(ask: Ask) -> None:
    asked, _ = ask(
        lambda text, _: "{subject} {question}" if text.startswith("Tell") else "[]", TWO, {"temperature": 0.0}
    )
    assert asked[-1] == "It is told: {subject} {question} So, Utopia borders:"


ROUNDS = ["", "Chad; Mali", "Chad; Mali; Niger; Togo", "Chad; Mali; Niger; Togo; Ghana"]
"""The names that are shown in each round where nothing bounds them."""


@pytest.mark.parametrize(
    ("expand", "shown", "count"),
    [
        ({}, ROUNDS, 5),
        ({"component": "mdv26/expand", "until_new": 2}, ROUNDS[:3], 5),
        ({"component": "mdv26/expand", "until_new": 3}, ROUNDS[:2], 4),
        ({"rounds": 1}, ROUNDS[:2], 4),
        ({"names": 1}, ["", "Mali", "Togo", "Ghana"], 5),
    ],
)
def test_a_draw_is_asked_who_else_until_few_are_new(
    ask: Ask, expand: dict[str, Any], shown: list[str], count: int
) -> None:
    said = {"": '["Chad", "Mali"]', "Mali": '["MALI", "Niger", "Togo"]', "Togo": '["Ghana"]'}

    def answer(text: str, draw: int) -> str | None:
        last = text.partition(">")[0].rpartition("; ")[2].strip("<") if "<" in text else ""
        return "[]" if draw else said.get(last, "[]")

    prompt = {"ask": "{{ subject }} borders:", "expand": {"ask": "<{{ found }}> {{ asked }}", **expand}}
    asked, found = ask(answer, prompt, {"samples": 2, "temperature": 1.0})
    assert asked == ["Utopia borders:", *((f"<{found}> " if found else "") + "Utopia borders:" for found in shown)]
    assert found.draws == (A, N)  # a draw that has found nothing is not asked again
    assert list(names(found)) == ["Chad", "Mali", "Niger", "Togo", "Ghana"][:count]


def test_a_lost_round_is_a_lost_draw(ask: Ask) -> None:
    prompt = {"ask": "{{ subject }} borders:", "expand": {"ask": "<{{ found }}> {{ asked }}"}}
    _, found = ask(lambda text, _: None if "<" in text else '["Chad"]', prompt, {"temperature": 0.0})
    assert found.failed


def test_a_draw_that_names_nothing_is_asked_again_so_often(ask: Ask) -> None:
    said = {0: "[]", 1: '["Chad"]', 2: "I could not say.", 3: "", 4: '["Mali"]', 5: "[]", 6: '["Togo"]'}
    asked, found = ask(
        lambda _, draw: said.get(draw, "[]"),
        {"component": "jhh25/prompt", "ask": "{{ subject }} borders:", "retries": 2},
        {"samples": 2, "temperature": 1.0},
    )
    assert len(asked) == 4
    assert found.draws == (A, A)
    assert names(found) == {"Chad": {"1"}, "Mali": {"0"}}


@pytest.mark.parametrize(
    ("first", "count"),
    [
        (["[]", "[]", "[]"], 3),
        (['["Chad"]', '["chad", "Mali"]', '["Chad"]'], 3),
        (['["Nan"]', '["Nan"]', '["Nan"]'], 3),  # a province, whose name float() reads as a number
        (['["100"]', '["104"]', '["97"]'], 3),
        (['["100"]', '["104"]', '["90"]'], 5),
        (['["Chad"]', "[]", '["Mali"]'], 5),
        (['["Chad"]', '["Chad"]', "Hm, who knows."], 5),
    ],
)
def test_further_draws_follow_where_the_first_disagree(ask: Ask, first: list[str], count: int) -> None:
    asked, found = ask(
        lambda _, draw: [*first, '["Niger"]', '["Togo"]'][draw],
        {"ask": "{{ subject }} borders:"},
        {"samples": 5, "at_first": 3, "temperature": 1.0},
    )
    assert (len(asked), len(found.draws)) == (count, count)
    assert ("Togo" in names(found)) == (count == 5)


RECIPE = """
description = "x"
[[generate]]
component = "chat"
model = "m"
shots = { k = 0 }
prompt.ask = "It is told: {{ account }} {{ question }}"
[[generate.prompt.steps]]
name = "account"
ask = "Tell of {{ subject }}."
[select]
rule = "cutoff"
threshold = 0.5
"""


@pytest.mark.kill
def test_a_killed_run_goes_on_where_it_was_and_asks_nothing_twice(
    tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "chain.toml").write_text(RECIPE)
    words = "predict --split val --edition mini --limit 12 --system chain.toml --store s.sqlite --out run".split()
    env = {"PYTHONPATH": str(Path(__file__).resolve().parents[2]), "PATH": "", "XDG_CACHE_HOME": str(tmp_path)}
    env["OPENAI_API_KEY"] = "sk-none"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")

    class Killing(Loopback):
        """Kills what asks it, once it has answered so often."""

        left = -1

        def reply(self, body: Body) -> tuple[int, Body]:
            self.left -= 1
            if not self.left:
                process.kill()
            return super().reply(body)

    with Killing(lambda body: "A land." if "Tell of" in prompt_of(body) else "[]") as server:
        server.left = 8
        words += ["--base-url", server.url, "--concurrency", "1"]
        with subprocess.Popen([sys.executable, "-m", "lmkbc", *words], env=env, cwd=tmp_path) as process:
            assert process.wait(300) < 0
        before = server.served
        assert command(*words)[0] == 0
        rest = server.served - before
    assert before == 8
    assert rest in (16, 17)  # of two for each query; the one that was answered as it was killed may not have been kept
