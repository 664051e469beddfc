"""Stand-ins on loopback for providers' servers, made from what their public documents say of paths, keys and errors.

None of them is the service itself: they show what a client must cope with, no more.
"""

from __future__ import annotations

import json
from typing import Any

from loopback import Body, Loopback, Request, some_names
from responses import Sent, response

KEY = "canary-8d2f60b1"


class Reasoning(Loopback):
    """A reasoning model of OpenAI's: it refuses, one field at a time, a limit by the old name and a temperature."""

    SAID = "Unsupported parameter: '{}' is not supported with this model."

    def reply(self, body: Body) -> tuple[int, Body]:
        for field in ("max_tokens", "temperature", "logprobs"):
            if field in body:
                fields = {"type": "invalid_request_error", "param": field, "code": "unsupported_parameter"}
                return 400, {"error": {"message": self.SAID.format(field)} | fields}
        return super().reply(body)


class Anthropic(Loopback):
    """The compatible address of a provider that ignores most fields, wants n to be 1 and clamps a temperature."""

    def __init__(self, answer: Any = some_names, **how: Any) -> None:
        super().__init__(answer, ignores=("logprobs", "response_format", "seed"), **how)

    def reply(self, body: Body) -> tuple[int, Body]:
        if body.get("n", 1) != 1:
            fields = {"type": "invalid_request_error", "message": "n: must be 1, several choices are not offered"}
            return 400, {"type": "error", "error": fields}
        return super().reply(body)


class Gemini(Loopback):
    """The compatible address of a provider whose errors are lists, and which knows no seed. key: the one it takes."""

    def __init__(self, answer: Any = some_names, *, key: str = KEY, **how: Any) -> None:
        super().__init__(answer, **how)
        self._key = key
        self.tells["models"] = {"data": [{"id": "models/gemini-2.5-flash"}, {"id": "models/gemini-2.5-pro"}]}

    def respond(self, request: Request) -> Sent:
        if request.fields.get("authorization") != f"Bearer {self._key}":
            detail = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}
            return self.error(400, "API key not valid. Please pass a valid API key.", detail)
        return super().respond(request)

    def reply(self, body: Body) -> tuple[int, Body]:
        if unknown := [
            f'Unknown name "{field}": Cannot find field.' for field in ("seed", "logprobs") if field in body
        ]:
            said = "\n".join(f"Invalid JSON payload received. {one}" for one in unknown)
            return 400, [{"error": {"code": 400, "message": said, "status": "INVALID_ARGUMENT"}}]
        return super().reply(body)

    @staticmethod
    def error(code: int, said: str, *details: Body) -> Sent:
        fields = {"code": code, "message": said, "status": "X", "details": list(details)}
        return response(json.dumps([{"error": fields}]).encode(), code)
