"""Types that all back ends of language models share: prompt, sampling, request, reply, and the protocols."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Annotated, Any, Literal, NamedTuple, Protocol, TypeVar

import msgspec

from lmkbc.models.thoughts import answer_of
from lmkbc.settings import ReadBy

Form = Literal["completion", "single", "chat"]
"""Form of a prompt in a recipe."""

Quantise = Literal["none", "4bit", "8bit"]
"""How the weights of a model on this machine are kept; "none": as they are."""

Role = Literal["system", "user", "assistant"]

ONE_TURN = "use form = 'single', whose only turn is the user's, or 'completion'"
"""Advice for a model whose chat template refuses the turns of a prompt; some refuse a system turn."""


@dataclass(frozen=True, slots=True)
class Message:
    """Turn of a chat, or part of a text."""

    role: Role
    content: str


@dataclass(frozen=True, slots=True)
class Prompt:
    """Prompt of a model.

    static: the part that queries with the same examples share. own: the part of the query. In a text, each of them is
    one message, and they are joined without a separator.
    form: "plain" for a short question, which the back end puts as a user's turn or as a text.
    """

    static: tuple[Message, ...]
    own: tuple[Message, ...]
    form: Form | Literal["plain"] = "chat"

    def followed(self, answer: str, turn: str) -> Prompt:
        """Return the prompt with an answer and a further user turn."""
        before = (*self.static, *self.own) if self.form == "chat" else (Message(self.own[-1].role, self.text),)
        return Prompt((), (*before, Message("assistant", answer), Message("user", turn)))

    @property
    def text(self) -> str:
        """Return the whole prompt as text, for completion."""
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
    "temperature": "sampling.temperature",
    "top_p": "sampling.top_p",
}
"""Field of a request that the engine sets -> the setting of a recipe that determines it."""


LOCAL_EXTRAS = ("top_k", "repetition_penalty")
"""Further request fields that local models support too."""


def check_extra(extra: Mapping[str, Any]) -> None:
    """Raise ValueError for extra request fields that the engine sets itself.

    Case is ignored, as some servers ignore it.
    """
    for name in extra:
        if (setting := OWN_FIELDS.get(name.casefold())) is not None:
            hint = f"say {setting} instead" if setting else "leave it out"
            raise ValueError(f"extra.{name} is a field of requests that is set otherwise: {hint}")


MOST_SAMPLES = 10_000
"""Most answers to one query."""


LATER = ReadBy(
    "a draw after the first, which has first_temperature,",
    lambda _, spec, *__: any(
        sampling.samples > 1 or sampling.first_temperature is None or style.steps
        for style, _, sampling in spec.variants
    ),
)
WRITTEN = ReadBy("a model that writes, not a ranking,", lambda *tables: tables[-2].asks_model)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """Settings of sampling; None leaves a parameter to the server.

    first_temperature: temperature of the first draw, if it differs; 0 for greedy decoding.
    max_tokens: per answer.
    samples: answers per query.
    at_first: number of draws that are asked for first. The others follow if the share of these that name the same
    object, numbers within 5 % of each other, or nothing, is below 0.8.
    seed: of the first draw; later draws count up; None for no seed.
    stop: None for the stops of the prompt's style.
    logprobs: whether to request log-probabilities and score candidates by them.
    extra: further fields of the request, in the server's format, such as stream = true.
    """

    temperature: Annotated[float | None, LATER] = None
    first_temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    samples: Annotated[int, WRITTEN] = 1
    at_first: Annotated[int | None, WRITTEN] = None
    seed: int | None = None
    stop: tuple[str, ...] | None = None
    logprobs: Annotated[bool, WRITTEN] = False
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise ValueError for a wrong value."""
        if not 1 <= self.samples <= MOST_SAMPLES:
            raise ValueError(f"samples is {self.samples}: give 1 to {MOST_SAMPLES:,}")
        if self.at_first is not None and not 1 <= self.at_first < self.samples:
            raise ValueError(f"at_first is {self.at_first}: give fewer draws than samples")
        if min(self.temperature or 0, self.first_temperature or 0) < 0 or (
            self.max_tokens is not None and self.max_tokens < 1
        ):
            raise ValueError("max_tokens is at least 1, and a temperature at least 0")
        check_extra(self.extra)


WITHHELD = ("refusal", "content_filter")
"""Finish reasons of a draw that the model or its provider withheld; it is neither an answer nor a failed call."""


LOOP = "loop"
"""Finish reason of a draw that was stopped because it repeated itself."""


CUT_OFF = ("length", LOOP)
"""Finish reasons of an incomplete draw; its complete parts count, its last words do not."""


FAILED = frozenset(
    "error server_error network_error internal_error insufficient_system_resource abort aborted cancelled canceled "
    "failed timeout".split()
)
"""Finish reasons of a draw that its server could not complete, whatever text it returns."""

NOTHING = "nothing"
"""Finish reason of a recorded draw without a text that counts as the answer "there is none"."""


class Reply(msgspec.Struct, omit_defaults=True):
    """Draw as it is stored.

    finish: "stop", a member of CUT_OFF or WITHHELD, or the server's word.
    prompt_tokens, completion_tokens: this draw's share of the request.
    logprobs: (token, log-probability) of the answer, if available.
    first: the same for the alternatives at the answer's first word, if requested.
    score: of each object that the answer names, if a recorded file has it.
    """

    text: str
    finish: str = "stop"
    served: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    logprobs: list[tuple[str, float]] | None = None
    first: list[tuple[str, float]] | None = None
    score: float | None = None

    @property
    def failed(self) -> bool:
        """Return whether the server aborted the draw."""
        return self.finish.casefold() in FAILED

    @property
    def is_answer(self) -> bool:
        """Return whether the draw is an answer or was withheld; not for blank text, a tool call or mere reasoning."""
        if self.failed:
            return False
        return self.finish in WITHHELD or bool(self.first) or bool(answer_of(self.text))

    @property
    def without_thoughts(self) -> Reply | None:
        """Return the answer alone; None if there is none."""
        text = answer_of(self.text) if self.is_answer else None
        return msgspec.structs.replace(self, text=text or "") if text is not None or self.first else None


@dataclass(frozen=True, slots=True)
class Request:
    """Some draws of a prompt.

    stops: texts that end an answer.
    lists: whether an answer ends with its closing bracket.
    schema: JSON schema of an answer, as text; "" for any text. Back ends that cannot hold an answer to it ignore it.
    shorter: returns prompts with fewer and fewer tokens, for a prompt that is too long.
    """

    prompt: Prompt
    draws: tuple[int, ...]
    sampling: Sampling
    stops: tuple[str, ...] = ()
    lists: bool = False
    schema: str = ""
    shorter: Callable[[], Iterable[Prompt]] = tuple


JOINED = 8
"""Tokens by which a part of an answer may grow where it is filled in: at its ends, and by words such as "to"."""


class PlannedRequest(NamedTuple):
    """A request before the answers are known that decide whether, how often and about what it is sent.

    name: its part in the conversation, such as "question". Where an answer will stand, the prompt has its slot, as in
    {object}. times: its largest number. held: most tokens that answers fill into the slots of all of these requests.
    """

    name: str
    request: Request
    times: int = 1
    held: int = 0

    @classmethod
    def filled(cls, name: str, request: Request, times: int, slots: Mapping[str, int]) -> PlannedRequest:
        """Return the request with what answers fill in. slots: name -> most tokens of an answer in its place."""
        text = request.prompt.text
        held = sum(text.count(f"{{{one}}}") * (most + JOINED) for one, most in slots.items())
        return cls(name, request, times, times * held)


@dataclass(frozen=True, slots=True)
class Response:
    """The prompt that was finally answered, and the reply to each draw; None for a failed draw."""

    prompt: Prompt
    replies: Sequence[Reply | None]

    def plain(self) -> Response:
        """Return the response; to a plain prompt, with answers without thoughts."""
        if self.prompt.form != "plain":
            return self
        return Response(self.prompt, [reply and reply.without_thoughts for reply in self.replies])


@dataclass(slots=True)
class Outcome:
    """Remarks on dialogues that have ended.

    lost: why answers are missing; "" if unknown. remarks: sentences for the user.
    """

    lost: str = ""
    remarks: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Call:
    """A draw from a model, with everything that determines its answer: no timeouts, keys or concurrency.

    prompt: the messages or the text.
    sampling: JSON values.
    draw: distinguishes draws with the same prompt and seed.
    schema: always None. It is part of the key of every kept answer, which would not be found without it.
    """

    model: str
    prompt: Any
    base_url: str = ""
    revision: str = ""
    sampling: Mapping[str, Any] = field(default_factory=dict)
    schema: None = None
    seed: int | None = None
    draw: int = 0

    @cached_property
    def key(self) -> str:
        """Return the SHA-256 of the call's canonical JSON, in which 1 and 1.0 are equal."""
        return _digest(self.settings | {"sampling": _whole(self.sampling), "prompt": self.prompt_digest})

    @cached_property
    def prompt_digest(self) -> str:
        """Return the SHA-256 of the prompt's JSON."""
        return _digest(self.prompt)

    @property
    def settings(self) -> dict[str, Any]:
        """Return all fields except the prompt."""
        return {name: getattr(self, name) for name in _SETTINGS}


_SETTINGS = tuple(field.name for field in fields(Call) if field.name != "prompt")


def canonical_json(value: Any) -> str:
    """Return a value's JSON with sorted names, so that equal values give equal texts."""
    return msgspec.json.encode(value, order="deterministic").decode()


def _digest(value: Any) -> str:
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def _whole(value: Any) -> Any:
    """Return a JSON value with whole floats as integers."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {name: _whole(inner) for name, inner in value.items()}
    return [_whole(inner) for inner in value] if isinstance(value, list | tuple) else value


Key = TypeVar("Key")
Result = TypeVar("Result")
Dialogue = Generator[list[Request], list[Response], Result]
"""Generator function that yields non-empty lists of requests, receives their responses, and returns a result."""


def next_requests(
    dialogue: Dialogue[Result], responses: list[Response] | None = None
) -> tuple[list[Request], Result | None]:
    """Return the next requests of a dialogue, and its result once there are no more requests."""
    try:
        return (next(dialogue) if responses is None else dialogue.send(responses)), None
    except StopIteration as end:
        return [], end.value


def single(request: Request) -> Dialogue[Sequence[Reply | None]]:
    """Send one request, and return its replies."""
    (response,) = yield [request]
    return response.replies


class LanguageModel(Protocol):
    """The protocol of all language models. A failure is never an empty answer.

    name: the model's name in records. place: where its answers are stored.
    """

    name: str
    place: str

    def complete(
        self, dialogues: Mapping[Key, Dialogue[Result]], outcome: Outcome | None = None
    ) -> Iterator[tuple[Key, Result]]:
        """Answer the requests of dialogues, and yield each dialogue's key and result, in any order.

        A reply to a plain prompt is an answer without thoughts. outcome: filled when all dialogues have ended.
        """

    def score(self, prompts: Sequence[Prompt], options: Sequence[Sequence[str]]) -> Sequence[Sequence[float] | None]:
        """Return the log-probability of each of its options as the answer to each prompt, in the order of the prompts.

        Options of a plain prompt are words that may come next. After an empty text, a local model's options are whole
        texts. A log-probability is -inf if it is unknown, or if the option exceeds the context. None stands for a
        prompt whose call failed.
        """

    def beginnings(self, prompt: Prompt, options: Sequence[str]) -> list[str]:
        """Return the shortest beginning of each option that no other option has, in whole tokens after a prompt.

        An option is returned whole if the model's tokens are unknown.
        """


class Size(NamedTuple):
    """Size of requests that a back end would send. estimated: whether the tokens are an estimate."""

    requests: int
    prompt_tokens: int
    answer_tokens: int
    estimated: bool = False


class BackEnd(LanguageModel, Protocol):
    """A language model that names its calls and measures its requests before it sends them, as a dry run needs."""

    def prompts(self, request: Request) -> Iterable[Prompt]:
        """Return the prompts of a request in the order in which they are tried: shorter and shorter ones."""

    def calls(self, request: Request, prompt: Prompt) -> Sequence[Call]:
        """Return the calls of a request, under whose keys its answers are kept."""

    def option_calls(self, prompts: Sequence[Prompt], options: Sequence[Sequence[str]]) -> Sequence[Call]:
        """Return the call of each prompt whose options are scored."""

    def kept(self, calls: Sequence[Call]) -> Sequence[Reply | None]:
        """Return the kept reply under each call; None if there is none."""

    def sizes(self, calls: Sequence[Call]) -> Iterator[tuple[Call, Size]]:
        """Yield the first call and the size of each request for calls that differ only in seed and draw."""
