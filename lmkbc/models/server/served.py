"""Metadata of a server: the models that it serves, and its context length in tokens.

If the recipe accepts any model, answers are stored under the server's name for it. Some servers report their context,
others only in refusals.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, MutableMapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

import msgspec

from lmkbc.errors import InputError, LmkbcError
from lmkbc.http import CallError
from lmkbc.models.answer_store import Store
from lmkbc.models.base import Call
from lmkbc.models.identity import same_model
from lmkbc.models.server.address import AZURE_HOSTS, Server
from lmkbc.models.server.client import ModelClient
from lmkbc.models.server.limits import GUESSED_ANSWER, estimate, limit_of
from lmkbc.models.server.refusal import AbsentError, RejectedError, TooLong, answer_limit
from lmkbc.models.server.request import LENGTH

SLACK = 8
"""Tokens that are kept free beside a prompt and its answer, since the prompt's are estimated."""
TURN = 5
"""Approximate number of tokens that a chat template adds to a turn."""


Listings = MutableMapping[str, Sequence[str]]
"""Server -> models that it lists."""

SHOWN = 5
"""Maximum number of models in an error."""


def as_served(
    server: Server, open_client: Callable[[], ModelClient], store: Store, listings: Listings, *, offline: bool
) -> Server:
    """Return the server with the name of the model that it serves, if the recipe accepts any model.

    An Azure deployment keeps the name that its owner chose. Each server is asked once for the same listings. Offline,
    its last answer counts; without one, the requested name stays. Raise InputError if it serves several other models.
    """
    url = server.base_url
    if not server.any_model or (urlsplit(url).hostname or "").endswith(AZURE_HOSTS):  # it lists what could be deployed
        return server
    note = f"models of {url}"
    if url not in listings and offline:
        listings[url] = tuple(store.note(note) or ())
    elif url not in listings:
        listings[url] = asyncio.run(_listed(open_client))
        store.set_note(note, list(listings[url]))
    return replace(server, model=_chosen(server, listings[url])) if listings[url] else server


async def _listed(open_client: Callable[[], ModelClient]) -> tuple[str, ...]:
    """Return the models that a server lists. Raise LmkbcError if it lists none."""
    client, reason = open_client(), ""
    names: Sequence[str] = ()
    try:
        names = await client.models()
    except AbsentError:
        pass
    except (CallError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        reason = f" ({error})"
    finally:
        better = None if names else await client.elsewhere()
        await client.close()
    if not names:
        raise better or LmkbcError(
            f"{client.server.base_url} does not tell at /models which model it serves{reason}: "
            "name the model with --model in place of --any-model"
        )
    return tuple(dict.fromkeys(names))


def _chosen(server: Server, models: Sequence[str]) -> str:
    """Return the requested model if the server lists it, else the only one."""
    if server.model in models:
        return server.model
    alike = [model for model in models if same_model(server.model, model)] or models
    if len(alike) > 1:
        names = ", ".join(alike[:SHOWN]) + (", ..." if len(alike) > SHOWN else "")
        raise InputError(f"{server.base_url} serves {len(alike)} models ({names}): name one of them with --model")
    return alike[0]


@dataclass(slots=True)
class Window:
    """Context of a server.

    tokens: maximum number of tokens of prompt and answer together; None if unknown.
    answer: maximum number of tokens of an answer; None if unknown.
    whole: whether the server refuses a request unless an answer fits at its full length; else the answer only ends
    early. The length that is asked for is then reduced to what fits.
    scale: real tokens per estimated token.
    reduced: the length of an answer that was to be asked for, and the least that was asked for; None if they agree.
    """

    tokens: int | None = None
    answer: int | None = None
    whole: bool = False
    scale: float = 1.0
    reduced: tuple[int, int] | None = None

    async def ask(self, client: ModelClient) -> None:
        """Ask the server for its context; it stays unknown if the server does not report it."""
        described = await client.describe()
        self.tokens, self.whole = described.window, described.whole

    async def count(self, client: ModelClient, call: Call) -> None:
        """Let the server count the tokens of a prompt, if it can, to improve the estimates of others."""
        turns = [] if isinstance(call.prompt, str) else call.prompt
        text = "\n".join(turn["content"] for turn in turns) if turns else call.prompt
        if (tokens := await client.tokens(text)) is not None:
            self._learn(call, len(tokens) + TURN * len(turns))

    def learn_from(self, call: Call, lengths: TooLong | None) -> None:
        """Take the numbers from a refusal, if it has any."""
        if lengths is not None:
            self.tokens = lengths.window or self.tokens
            if lengths.prompt is not None:
                self._learn(call, lengths.prompt)

    def learn_limit(self, body: dict[str, Any], refused: RejectedError) -> bool:
        """Take from a refusal how long an answer may be; return whether a shorter one may be accepted."""
        asked, prompt = limit_of(body), estimate(body)[0]
        limit = None if asked is None else answer_limit(asked, refused.said)
        if asked is None or limit is None:
            return False
        if limit.window is None:
            learnt = replace(self, answer=limit.answer)
        else:
            again = self.whole and self.tokens == limit.window
            scale = limit.prompt / prompt if limit.prompt else self.scale * (1.25 if again else 1.0)
            learnt = replace(self, tokens=limit.window, whole=True, scale=scale)
        left = limit_of(learnt.fitted(body))
        if left is None or not (1 if limit.window is None else min(asked, GUESSED_ANSWER)) <= left < asked:
            return False
        self.answer, self.tokens, self.whole, self.scale = learnt.answer, learnt.tokens, learnt.whole, learnt.scale
        return True

    def fitted(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return a request with the length of its answer reduced to what the server accepts."""
        if (asked := limit_of(body)) is None:
            return body
        left = asked if self.answer is None else min(asked, self.answer)
        if self.whole and self.tokens is not None:
            prompt = math.ceil(estimate(body)[0] * self.scale)
            room = self.tokens - prompt - prompt // 32 - SLACK
            left = min(left, room) if room > 0 else left
        if left == asked:
            return body
        self.reduced = asked, min(left, self.reduced[1] if self.reduced else left)
        return body | {name: left for name in LENGTH if name in body}

    def exceeded(self, prompt: int, answer: int) -> bool:
        """Return whether a prompt of this length probably leaves no room for an answer."""
        return self.tokens is not None and prompt * self.scale + min(answer, GUESSED_ANSWER) > self.tokens

    def _learn(self, call: Call, tokens: int) -> None:
        self.scale = tokens / length_of(call)[0]


def length_of(call: Call) -> tuple[int, int]:
    """Return the estimated tokens of a prompt, and of its answer at its longest."""
    return estimate({"prompt" if isinstance(call.prompt, str) else "messages": call.prompt} | dict(call.sampling))
