"""Every back end keeps to this: a new one needs a case in CASES, and passes all of this."""

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
import tiny_causal
from loopback import Body, Loopback, prompt_of
from space import MINI, SPACE

from lmkbc import InputError, registry
from lmkbc.generate.access import step_model
from lmkbc.models.answers import CallCounter
from lmkbc.models.plain_questions import paragraphs, texts, word_log_probabilities
from lmkbc.testing import Notes, Run

PROMPTS = ["Paris is in", "The capital of Peru is", "Q: Who wrote Emma?\nA:", "é", "Paris is the capital of"]
OPTIONS = ("True", "False", "Perhaps")
TOO_LONG = "x" * 2000
"""A call that fails, whatever the back end: it exceeds the window."""

Open = Callable[..., tuple[Any, Notes]]
"""Opens the model in a run of its own. kept: with the store of other such runs. offline: nobody is asked."""


def said(body: Body) -> Body:
    """Text and probabilities by the prompt alone."""
    prompt = prompt_of(body)
    share = 0.1 + 0.8 * (len(prompt) % 7) / 7
    word = OPTIONS[len(prompt) % 3]  # for what tells no probabilities
    return {"content": f" {word} {prompt[::-1]}\nmore", "first": {"True": math.log(share), " Fal": math.log(0.09)}}


def refused(body: Body, _: Body) -> tuple[int, Body] | None:
    """Refuse what is too long, as servers do."""
    error = {"message": "maximum context length is 512", "code": "context_length_exceeded"}
    return (400, error) if len(prompt_of(body)) >= len(TOO_LONG) else None


Case = Callable[[pytest.FixtureRequest, Path], AbstractContextManager[dict[str, Any]]]
"""Makes what a back end needs, and yields what a run is given: the model, and a server's address."""


def client(server: type[Loopback]) -> Case:
    """Return the case of a client. server: a stand-in that speaks its API."""

    @contextmanager
    def case(_: pytest.FixtureRequest, __: Path) -> Iterator[dict[str, Any]]:
        with server(said, change=refused) as serving:
            yield {"model": "stand-in", "url": serving.url}

    return case


@contextmanager
def local(request: pytest.FixtureRequest, _: Path) -> Iterator[dict[str, Any]]:
    yield {"model": str(request.getfixturevalue("tiny"))}


@contextmanager
def window(_: pytest.FixtureRequest, folder: Path) -> Iterator[dict[str, Any]]:
    """A model whose sliding window is shorter than most prompts."""
    yield {"model": str(tiny_causal.save(folder / "tiny", "gemma3"))}


CASES: dict[str, list[Case]] = {
    "server": [client(Loopback)],
    "local": [local, window],
}
"""Name of a back end in the registry -> its cases."""

PAIRS = [(name, case) for name, cases in CASES.items() for case in cases]


def test_every_back_end_has_a_case() -> None:
    assert CASES.keys() == {*registry.BACK_ENDS}


def test_a_back_end_of_before_names_the_way_that_is_left() -> None:
    with pytest.raises(InputError, match="unknown back end 'vllm': serve the model with 'vllm serve MODEL'"):
        step_model({"backend": "vllm"}, "ask")


@pytest.fixture(params=PAIRS, ids=[f"{name}-{case.__name__}" for name, case in PAIRS])
def opened(request: pytest.FixtureRequest, tmp_path: Path, one_thread: None) -> Iterator[Open]:
    """Open each back end as a recipe's table does."""
    name, case = request.param
    fresh = iter(range(100))
    table = {"backend": name} | ({"limits": {"total_wait": 0.5}} if name != "local" else {})
    with case(request, tmp_path) as given:

        def opening(*, kept: bool = False, offline: bool = False, dry: CallCounter | None = None) -> tuple[Any, Notes]:
            store = tmp_path / ("kept.sqlite" if kept else f"{next(fresh)}.sqlite")
            servers = {"base_url": given.get("url"), "store": store}
            quiet = offline or name == "local" or dry is not None
            run = Run(workspace=SPACE, edition=MINI, servers=servers, offline=quiet, model=given["model"], dry=dry)
            notes = Notes()
            return step_model(table, "model").open(run, notes), notes

        yield opening


ASKS: dict[str, Callable[[Any, list[str]], Any]] = {
    "texts": lambda model, prompts: texts(model, prompts, 6),
    "paragraphs": lambda model, prompts: paragraphs(model, prompts, 24),
    "log_probabilities": lambda model, prompts: word_log_probabilities(model, prompts, OPTIONS),
}
every_ask = pytest.mark.parametrize("ask", ASKS.values(), ids=ASKS)
Ask = Callable[[Any, list[str]], Any]


def same(found: Any, wanted: Any) -> bool:
    """Texts to the letter, probabilities as far as sums in another order agree."""
    if isinstance(wanted, list):
        return len(found) == len(wanted) and all(map(same, found, wanted))
    return bool(found == (pytest.approx(wanted, rel=1e-4) if isinstance(wanted, float) else wanted))


@pytest.mark.whole(only=["local-window-paragraphs", "local-window-log_probabilities"])
@every_ask
def test_a_batch_is_its_prompts_alone_in_any_order(opened: Open, ask: Ask) -> None:
    together = ask(opened()[0], PROMPTS)
    alone = opened()[0]
    assert same(together, [one for prompt in PROMPTS for one in ask(alone, [prompt])])
    assert same(ask(opened()[0], PROMPTS[::-1]), together[::-1])
    assert len({repr(one) for one in together}) > 1  # what is said depends on the prompt


@pytest.mark.whole(only=["local-window-paragraphs", "local-window-log_probabilities"])
@every_ask
def test_the_same_is_said_again_and_what_was_kept_is_not_asked_again(opened: Open, ask: Ask) -> None:
    first, again = ask(opened(kept=True)[0], PROMPTS), ask(opened()[0], PROMPTS)
    assert first == again == ask(opened(kept=True, offline=True)[0], PROMPTS)


@pytest.mark.whole(only=["window"])
@every_ask
def test_a_prompt_that_is_asked_twice_is_answered_twice_alike(opened: Open, ask: Ask) -> None:
    one, other, third = ask(opened()[0], [PROMPTS[0], PROMPTS[1], PROMPTS[0]])
    assert same(one, third)
    assert not same(one, other)


@every_ask
def test_nothing_asked_is_nothing_answered(opened: Open, ask: Ask) -> None:
    assert ask(opened()[0], []) == []


def test_a_text_is_one_line_and_never_blank(opened: Open) -> None:
    model, _ = opened()
    found = texts(model, PROMPTS, 40)
    assert len(found) == len(PROMPTS)
    for draws in found:
        for text in draws:
            assert "\n" not in text
            assert text == text.strip() != ""


def test_probabilities_are_of_each_option_and_sum_to_one_at_most(opened: Open) -> None:
    model, _ = opened()
    for row in word_log_probabilities(model, PROMPTS, OPTIONS):
        assert len(row) == len(OPTIONS)
        assert all(p <= 0 for p in row)  # no nan, which no option would be held for
        assert math.fsum(map(math.exp, row)) <= 1 + 1e-6
        assert max(row) > -math.inf
    straight, turned = (word_log_probabilities(model, PROMPTS, options) for options in (OPTIONS, OPTIONS[::-1]))
    assert same([row[::-1] for row in turned], straight)


@pytest.mark.whole(only=["window"])
def test_a_failed_call_is_no_answer_and_takes_no_other_with_it(opened: Open) -> None:
    """Not an empty text, not a certainty; and asked again by the next run, since nothing of it is kept."""
    alone = opened()[0]
    asks = {**ASKS, "paragraphs": paragraphs}  # as long as the window allows
    for _ in range(2):
        model, _ = opened(kept=True)
        prompts = [PROMPTS[0], TOO_LONG, PROMPTS[1]]
        for ask, lost in (("texts", []), ("paragraphs", None), ("log_probabilities", [-math.inf] * len(OPTIONS))):
            one, failed, other = asks[ask](model, prompts)
            assert failed == lost
            assert same([one, other], asks[ask](alone, PROMPTS[:2]))


@pytest.mark.whole(only=["window"])
@every_ask
def test_a_dry_run_counts_what_would_be_asked_and_asks_nothing(opened: Open, ask: Ask) -> None:
    counter = CallCounter()
    dry, _ = opened(kept=True, dry=counter)
    lost = ask(dry, PROMPTS)
    assert (counter.requests, counter.stored) == (len(PROMPTS), 0)
    assert counter.prompt_tokens > len(PROMPTS)
    assert ask(dry, PROMPTS) == lost  # and each call is counted once
    assert counter.taken().requests == len(PROMPTS)
    ask(opened(kept=True)[0], PROMPTS)
    ask(opened(kept=True, dry=counter)[0], PROMPTS)
    assert (counter.requests, counter.stored) == (0, len(PROMPTS))
