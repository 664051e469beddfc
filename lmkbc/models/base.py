"""Types of every language model, for any back end: prompt, sampling, request, reply, and the protocol."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeVar

import msgspec

from lmkbc.names import shown

Form = Literal["completion", "single", "chat"]


Role = Literal["system", "user", "assistant"]


@dataclass(frozen=True, slots=True)
class Message:
    """Turn of a chat, or part of a text."""

    role: Role
    content: str


@dataclass(frozen=True, slots=True)
class Prompt:
    """Prompt of a model. static: the part that queries with the same examples share. own: the part of the query.

    Of a text, static and own are one message each, to be joined as they are.
    """

    static: tuple[Message, ...]
    own: tuple[Message, ...]
    form: Form = "chat"

    def followed(self, answer: str, turn: str) -> Prompt:
        """Return the prompt with an answer and another turn of the user behind it."""
        before = (*self.static, *self.own) if self.form == "chat" else (Message(self.own[-1].role, self.text),)
        return Prompt((), (*before, Message("assistant", answer), Message("user", turn)))

    @property
    def text(self) -> str:
        """The whole as text, for completion."""
        return ("\n\n" if self.form == "chat" else "").join(turn.content for turn in (*self.static, *self.own))

    def messages(self) -> list[dict[str, str]]:
        """Return the whole prompt as messages of a chat request; a text is a single message."""
        if self.form == "chat":
            return [{"role": turn.role, "content": turn.content} for turn in (*self.static, *self.own)]
        return [{"role": self.own[-1].role, "content": self.text}]


OWN_FIELDS = {
    "best_of": "sampling.samples",
    "echo": "",
    "logprobs": "sampling.logprobs",
    "max_tokens": "sampling.max_tokens",
    "messages": "prompt",
    "model": "model",
    "n": "sampling.samples",
    "prompt": "prompt",
    "seed": "sampling.seed",
    "stop": "sampling.stop",
    "stream": "",
    "temperature": "sampling.temperature",
    "top_p": "sampling.top_p",
}
"""Fields of a request that the engine sets itself, and the setting of a recipe that each follows from."""


LOCAL_EXTRAS = ("top_k", "repetition_penalty")
"""Further fields of a request that a model of this machine knows too."""


def check_extra(extra: Mapping[str, Any]) -> None:
    """Refuse further fields of a request that are the engine's own, by ValueError. Some servers ignore the case."""
    for name in extra:
        if (setting := OWN_FIELDS.get(name.casefold())) is not None:
            hint = f"say {setting} instead" if setting else "leave it out"
            raise ValueError(f"extra.{name} is a field of requests that is set otherwise: {hint}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """Settings of sampling. None leaves a parameter to the server.

    first_temperature: of the first draw, where it is not that of the others: 0 draws it greedily. max_tokens: of one
    answer. samples: answers per query. seed: of the first draw, the next ones count up; None draws unseeded. stop: None
    for what ends an answer in the prompt's style. logprobs: ask for them, and score candidates by them. extra: further
    fields of the request, as the server knows them.
    """

    temperature: float | None = None
    first_temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    samples: int = 1
    seed: int | None = None
    stop: tuple[str, ...] | None = None
    logprobs: bool = False
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """ValueError for a value that makes no sense."""
        if self.samples < 1:
            raise ValueError(f"samples is {self.samples}: give at least 1")
        check_extra(self.extra)


WITHHELD = ("refusal", "content_filter")
"""Finish reasons of a draw that the model or its provider withheld: neither an answer nor a lost call."""


LOOP = "loop"
"""Finish reason of a draw that was stopped since it only repeated itself."""


CUT_OFF = ("length", LOOP)
"""Finish reasons of an incomplete draw: its complete parts count, its last words do not."""


FAILED = frozenset(
    "error server_error network_error internal_error insufficient_system_resource abort aborted cancelled canceled "
    "failed timeout".split()
)
"""Finish reasons of a draw that its server could not complete, whatever text it returns."""


class Reply(msgspec.Struct, omit_defaults=True):
    """Draw, as it is stored. finish: "stop", a member of CUT_OFF or WITHHELD, or the server's own word.

    The tokens are this draw's share of the request's. logprobs: (token, log-probability) of the answer, where offered.
    first: the same of the tokens that could have come where its first word begins, where the request asked for them.
    """

    text: str
    finish: str = "stop"
    served: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    logprobs: list[tuple[str, float]] | None = None
    first: list[tuple[str, float]] | None = None

    @property
    def failed(self) -> bool:
        """Return whether the server broke the draw off."""
        return self.finish.casefold() in FAILED

    @property
    def is_answer(self) -> bool:
        """Return whether the draw is an answer or was withheld, not blank text, a tool call or only reasoning."""
        if self.failed:
            return False
        return self.finish in WITHHELD or bool(self.first) or bool(answer_of(self.text))


def answer_of(text: str) -> str | None:
    """Return a completion without its reasoning; None if the reasoning has no end, "" if nothing visible follows."""
    _, thought, rest = text.rpartition("</think>")
    return None if not thought and "<think>" in text else shown(rest if thought else text)


@dataclass(frozen=True, slots=True)
class Request:
    """Some draws of a prompt. stops: what ends a text. lists: whether an answer ends where its brackets are closed.

    schema: the shape of the JSON that is asked for, if any. shorter: yields prompts that say the same in ever fewer
    tokens, for a prompt that is too long.
    """

    prompt: Prompt
    draws: tuple[int, ...]
    sampling: Sampling
    stops: tuple[str, ...] = ()
    lists: bool = False
    schema: Mapping[str, Any] | None = None
    shorter: Callable[[], Iterable[Prompt]] = tuple


@dataclass(frozen=True, slots=True)
class Answered:
    """The prompt that was answered at last, and the reply to each draw of a request; None for a draw that failed."""

    prompt: Prompt
    replies: Sequence[Reply | None]


Key = TypeVar("Key")
Result = TypeVar("Result")
Talk = Generator[list[Request], list[Answered], Result]
"""Coroutine: yields non-empty lists of requests, receives an answer to each, returns a result."""


def resumed(talk: Talk[Result], answered: list[Answered] | None = None) -> tuple[list[Request], Result | None]:
    """Return the requests that a talk goes on with, and its result once it has none."""
    try:
        return (next(talk) if answered is None else talk.send(answered)), None
    except StopIteration as end:
        return [], end.value


class LanguageModel(Protocol):
    """The one protocol for what answers text, whatever the back end. A failure is never an empty answer.

    name: what records call the model. place: where its answers are kept. Batches are answered in the order of their
    prompts; plain strings are asked as one turn of the user, or as a text.
    """

    name: str
    place: str

    @property
    def lost(self) -> str:
        """Why answers of the last conversation are missing; "" where nothing tells."""
        ...

    def converse(self, talks: Mapping[Key, Talk[Result]]) -> Iterator[tuple[Key, Result]]:
        """Answer what talks ask until each has its result, which is yielded with its key, in any order."""
        ...

    def remarks(self) -> Iterator[str]:
        """Yield what a person should know of the last conversation."""
        ...

    def texts(
        self, prompts: Sequence[str], max_tokens: int, draws: int = 1, temperature: float = 0.0, seed: int = 0
    ) -> list[list[str]]:
        """Return the draws of each prompt, each a line; blank or failed ones are left out.

        seed: for back ends that draw by one.
        """
        ...

    def paragraphs(self, prompts: Sequence[str], max_tokens: int = 128, stop: str = "\n\n") -> Sequence[str | None]:
        """Return the greedy answer to each prompt, about a paragraph; None where none can be had.

        stop: what ends a text that a model goes on with; "" for nothing.
        """
        ...

    def log_probabilities(self, prompts: Sequence[str], options: Sequence[str]) -> list[list[float]]:
        """Return, for each prompt, the log-probability of each word that may come next; -inf if unknown."""
        ...

    def option_scores(
        self, prompts: Sequence[Prompt], options: Sequence[Sequence[str]]
    ) -> Sequence[Sequence[float] | None]:
        """Return the log-probability that each prompt is answered by each of its own options.

        -inf for an option that there is no room for; None for a prompt whose call failed.
        """
        ...

    def lengths(self, options: Sequence[str]) -> Sequence[int]:
        """Return of how many tokens each option is that was scored."""
        ...
