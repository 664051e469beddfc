"""From queries to candidates with a local model: what draws come to, prompts, the store, context, the recipe."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import tiny_causal
from opened import asks, generators, over_local, recipe_of
from space import MINI, RELATIONS, SPACE, TRAIN

from lmkbc import InputError
from lmkbc.ask.builder import PromptBuilder
from lmkbc.generate.language_model import AnswerGenerator
from lmkbc.local.decode import Completion, Decoding
from lmkbc.local.model import CausalModel
from lmkbc.models.answers import Store
from lmkbc.plan import Plan
from lmkbc.run.pipeline import propose
from lmkbc.testing import Query, Run, State
from tests.candidates import sources


class Scripted(CausalModel):
    """A tiny model whose answers are written here."""

    def __init__(self, script: Sequence[Completion]) -> None:
        super().__init__(tiny_causal.model("llama"), tiny_causal.tokenizer())
        self.script = script
        self.asked: list[str] = []

    def complete(
        self, prompts: Sequence[str], how: Decoding, seeds: Sequence[int] = ()
    ) -> Iterator[tuple[int, list[Completion]]]:
        self.asked += prompts
        for place in reversed(range(len(prompts))):
            yield place, list(self.script[: how.draws])


def generator(
    model: CausalModel,
    style: dict[str, Any] | None = None,
    draws: int = 1,
    own: dict[str, Any] | None = None,
    **more: Any,
) -> AnswerGenerator:
    tables = {
        "prompt": style or {"form": "completion"},
        "shots": {"k": 2},
        "sampling": {"samples": draws, "temperature": 0.7, "max_tokens": 8},
        "relations": own or {},
    }
    asking = PromptBuilder(MINI, RELATIONS, TRAIN, asks(tables), SPACE.relations)
    return over_local(model, asking, RELATIONS, "tiny", **more)


def queries() -> list[Query]:
    return SPACE.queries(MINI, "val")[::4]


def test_each_draw_is_a_source_and_failures_are_no_answers() -> None:
    model = Scripted([Completion(' ["Peru"]'), Completion(" []"), Completion(' ["Pe', finished=False)])
    asked = generator(model, draws=3)
    query = next(one for one in queries() if RELATIONS[one.relation].kind == "entity")
    (found,) = asked.generate([query])
    assert [(one.text, one.sources) for one in found.candidates if one.text] in ([("Peru", sources("tiny#0"))], [])
    assert sources("tiny#1") in [one.sources for one in found.nothing]
    assert found.draws == (State.ANSWERED, State.ABSTAINED, State.TRUNCATED)
    assert asked.notes.remarks[0] == "tiny: 1 of 3 draws cut off at max_tokens"


def test_relations_may_be_asked_in_their_own_way() -> None:
    given = queries()
    first = given[0].relation
    hows: list[Decoding] = []

    class Watched(Scripted):
        def complete(
            self, prompts: Sequence[str], how: Decoding, seeds: Sequence[int] = ()
        ) -> Iterator[tuple[int, list[Completion]]]:
            hows.append(how)
            return super().complete(prompts, how, seeds)

    own = {
        first: {"sampling": {"temperature": 0.0, "extra": {"repetition_penalty": 1.15}}, "prompt": {"listing": "line"}}
    }
    assert len(list(generator(Watched([Completion(" x")]), own=own).generate(given))) == len(set(given))
    assert {(how.temperature, how.repetition_penalty, how.stops) for how in hows} == {
        (0.0, 1.15, ("\n\n",)),
        (0.7, 1.0, ("\n",)),
    }


def test_candidates_are_scored_by_their_tokens_where_asked_for() -> None:
    model = Scripted([Completion(' ["Peru"]', logprobs=((' ["', -3.0), ("Per", -1.0), ("u", -2.0), ('"]', -9.0)))])
    query = next(one for one in queries() if RELATIONS[one.relation].kind == "entity" and "orders" in one.relation)
    (found,) = generator(model).generate([query])
    assert [(one.text, round(one.score, 6)) for one in found.candidates] == [("Peru", round(math.exp(-1.5), 6))]


def test_of_more_draws_only_those_that_are_not_stored_are_asked_for(tmp_path: Path) -> None:
    store, model = Store(tmp_path / "store.sqlite"), CausalModel(tiny_causal.model("llama"), tiny_causal.tokenizer())
    given, drawn = queries()[:3], list[tuple[int, int]]()

    class Watched(CausalModel):
        def complete(
            self, prompts: Sequence[str], how: Decoding, seeds: Sequence[int] = ()
        ) -> Iterator[tuple[int, list[Completion]]]:
            drawn.append((how.first, how.draws))
            return super().complete(prompts, how, seeds)

    watched = Watched(model.model, model.tokenizer)
    few = {one.query: one.draws for one in generator(watched, draws=2, store=store).generate(given)}
    more = {one.query: one for one in generator(watched, draws=5, store=store).generate(given)}
    assert drawn == [(0, 2), (2, 3)]
    assert all(more[query].draws[:2] == states for query, states in few.items())
    assert more == {one.query: one for one in generator(model, draws=5).generate(given)}
    store.close()


@pytest.mark.parametrize(
    ("template", "why"),
    [
        ("{{ raise_exception('System role not supported') }}", "System role not supported"),
        ("{{ 1 / 0 }}", "division by zero"),
        ("{{ 'a' + 1 }}", "can only concatenate str"),
        ("{{ [][0].x.y }}", "has no element 0"),
        ("{{ range(10 ** 9) | length }}", "Range too big"),
        ("{% include 'x' %}", "no loader"),
        ("{% macro again() %}{{ again() }}{% endmacro %}{{ again() }}", "maximum recursion depth"),
    ],
)
def test_a_template_that_fails_is_told_of(template: str, why: str) -> None:
    model = Scripted([Completion(" []")])
    model.tokenizer.chat_template = template
    with pytest.raises(InputError, match=rf"chat template refuses a prompt \(.*{why}.*\): use form"):
        list(generator(model, {"form": "chat"}).generate(queries()[:1]))


def recipe(model: Path, **settings: Any) -> Any:
    table = {
        "component": "causal",
        "model": str(model),
        "prompt": {"form": "completion"},
        "shots": {"k": 1},
        **settings,
    }
    return recipe_of(table, name="x")


@pytest.fixture(autouse=True)
def _own_store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("lmkbc.session.run.default_place", lambda *_, **__: tmp_path / "store.sqlite")


def run(**more: Any) -> Run:
    return Run(workspace=SPACE, edition=MINI, **more)


def test_a_recipe_names_the_model_and_the_command_line_comes_first(tiny: Path) -> None:
    sampling = {"max_tokens": 4, "samples": 2, "temperature": 0.5}
    proposals = propose(Plan.of(run(), recipe(tiny, sampling=sampling)), queries()[:5])
    assert len(proposals.sets) == 5
    assert all(len(one.draws) == 2 for one in proposals.sets)
    with pytest.raises(InputError, match="elsewhere"):
        propose(Plan.of(run(model="/elsewhere"), recipe(tiny)), queries()[:1])
    ((_, asked),) = generators(run(model=str(tiny)), recipe(Path("/elsewhere")))
    assert isinstance(asked, AnswerGenerator)


def test_a_recipe_may_verify(tiny: Path) -> None:
    system = recipe(tiny, verify={"variants": ["statement"]}, sampling={"max_tokens": 12})
    ((_, verified),) = generators(run(), system)
    ((_, plain),) = generators(run(), recipe(tiny, sampling={"max_tokens": 12}))
    given = queries()
    before = {one.query: one for one in plain.generate(given)}
    truths = set()
    for one in verified.generate(given):
        assert [c.text for c in one.candidates] == [c.text for c in before[one.query].candidates]
        assert [c.score for c in one.candidates] == [c.score for c in before[one.query].candidates]
        assert all(c.verification is None for c in one.candidates if not c.text)
        truths |= {c.verification for c in one.candidates if c.text}
    assert len(truths) > 1


def test_sources_of_one_model_load_it_once(tiny: Path) -> None:
    each = [{"name": "a"}, {"name": "b", "prompt": {"ask": "{{ question }} "}}]
    (first, one), (second, other) = generators(run(), recipe(tiny, each=each, sampling={"max_tokens": 4}))
    assert (first, second) == ("a", "b")
    assert isinstance(one, AnswerGenerator)
    assert isinstance(other, AnswerGenerator)
    assert one._model.model is other._model.model
    (found,) = other.generate(queries()[:1])
    assert {source for c in found.candidates for source in c.sources} <= {*sources("b#0")}
