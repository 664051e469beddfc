"""Stand-ins on loopback for providers' servers, made from what their public documents say of paths, keys and errors.

None of them is the service itself: they show what a client must cope with, no more.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qs, urlsplit

from loopback import Body, Loopback, Request, Server, some_names
from responses import Sent, response

KEY = "canary-8d2f60b1"


class Azure(Loopback):
    """A deployment called prod of gpt-4o: its path holds its name, its key is a header of its own, models are not told.

    newer: the path without a version, where the key is a bearer's, and the request names the deployment.
    """

    VERSION = "2024-10-21"

    def __init__(self, *, newer: bool = False, served: str = "gpt-4o-2024-08-06", **how: object) -> None:
        super().__init__(**how)  # type: ignore[arg-type]
        self._newer, self._served = newer, served

    @property
    def url(self) -> str:
        base = Server.url.fget(self)  # type: ignore[attr-defined]
        return f"{base}/openai/v1" if self._newer else f"{base}/openai/deployments/prod?api-version={self.VERSION}"

    def respond(self, request: Request) -> Sent:
        parts = urlsplit(request.path)
        keys = request.fields.get("api-key"), request.fields.get("authorization")
        if keys != ((None, f"Bearer {KEY}") if self._newer else (KEY, None)):
            said = "Access denied due to invalid subscription key or wrong API endpoint."
            return response({"error": {"code": "401", "message": said}}, 401)
        version = parse_qs(parts.query).get("api-version", [])
        if version != ([] if self._newer else [self.VERSION]):
            return response({"error": {"code": "404", "message": "Resource not found"}}, 404)
        path = "/openai/v1" if self._newer else "/openai/deployments/prod"
        if parts.path != f"{path}/chat/completions":
            return response({"error": {"code": "404", "message": "Resource not found"}}, 404)
        return super().respond(request._replace(path=parts.path))

    def reply(self, body: Body) -> tuple[int, Body]:
        if self._newer and body["model"] != "prod":
            said = "The API deployment for this resource does not exist."
            return 404, {"error": {"code": "DeploymentNotFound", "message": said}}
        status, answer = super().reply(body)
        return status, answer | {"model": self._served} if status == 200 else answer


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
