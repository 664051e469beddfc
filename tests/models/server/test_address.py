"""Web addresses that are typed, or stand in a file: what cannot be asked is refused before anything is sent."""

from dataclasses import replace
from pathlib import Path

import pytest
from loopback import Loopback
from space import SPACE

import lmkbc
from lmkbc import Download, InputError
from lmkbc.files.fetch import fetch
from lmkbc.models.server.address import Server

NONE = (
    "https://../x http://[:: https://\u202e/x https://a\r/x https://a..b/x x ftp://x/y file:///etc/passwd "
    f"http://127.0.0.1:99999/x http://x:0/ https://{'a' * 70}/x"
)


@pytest.mark.parametrize("url", [*NONE.split(" "), "", "http://x y/"])
def test_what_is_no_web_address_is_refused(url: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is no http or https address"):
        fetch(
            replace(SPACE.edition("2024"), splits={"train": Download(url, "0" * 64), "val": None, "test": None}),
            tmp_path,
        )
    with pytest.raises(InputError, match="is no http or https address"):
        Server.of(url or "x", "m", offline=True)


KEYS = (
    "u:{}@h.example:99999/v1 u:{}@h.example:x/v1 u:{}@[::1/v1 u:{}@h..example/v1 u:{}@h_example]/v1 {}@/v1 "
    "u:{}@h.example :{}@h.example {}@h.example h.example/v1?api_key={} h.example/v1#{} h.example:0/v1?key={} "
    "u:p{}?@h.example:0/v1"
)


@pytest.mark.parametrize("rest", [*KEYS.split(" "), "u:{}@h example/v1", "u:{} @h.example/v1", "u:{}\u202e@h.example"])
@pytest.mark.parametrize("scheme", ["https://", ""])
def test_a_key_in_an_address_is_refused_unseen(scheme: str, rest: str) -> None:
    with pytest.raises(InputError, match=r"^the base URL (is no http or https|of h.example carries more)") as error:
        Server.of(scheme + rest.format("sk-canary"), "m", offline=True)
    assert "sk-canary" not in str(error.value)


@pytest.mark.parametrize("url", ["http://127.0.0.1:8080/v1", "http://[::1]:1/", "https://a.b", "https://münchen.de/ä"])
def test_what_is_one_is_taken(url: str) -> None:
    assert Server.of(url, "m", offline=True).base_url == url.rstrip("/")


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("http://a.b/v1", "http://a.b", True),
        ("http://a.b/v1", "http://A.B:80/v1/", True),
        ("https://a.b:443/", "https://a.b/v1/chat/completions", True),
        ("https://a.b?api-version=1", "https://a.b/v1?api-version=1", True),
        ("http://a.b/v1", "http://a.b:443/v1", False),
        ("http://a.b/v1", "https://a.b/v1", False),
        ("http://a.b/v1", "http://a.b/v2", False),
        ("http://a.b/v1", "http://a.b/openai", False),
        ("http://localhost/v1", "http://127.0.0.1/v1", False),
    ],
)
def test_answers_of_a_server_have_one_key_in_whatever_form_its_address_is_typed(
    one: str, other: str, same: bool
) -> None:
    keys = {Server.of(url, "m", offline=True).call("Say yes.", {}).key for url in (one, other)}
    assert len(keys) == (1 if same else 2)


def test_a_server_is_not_asked_twice_for_an_address_without_its_path(tmp_path: Path) -> None:
    with Loopback() as server:
        given = {"edition": "mini", "system": "few-shot", "any_model": True, "store": tmp_path / "s.sqlite", "limit": 2}
        server.tells["models"] = {"data": [{"id": "m"}]}
        lmkbc.predict("val", base_url=server.url, out=tmp_path / "a", **given)
        asked = server.served
        lmkbc.predict("val", base_url=server.url.removesuffix("/v1"), out=tmp_path / "b", **given)
        assert server.served == asked > 0
        lmkbc.predict("val", base_url=f"{server.url}/chat", out=tmp_path / "c", **given)
        assert server.served > asked


def test_what_a_file_of_another_system_leaves_at_the_end_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A script with carriage returns, read by a shell, leaves one in each variable."""
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:8080/v1\r")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1234567890\r")
    server = Server.of(None, "m")
    assert (server.base_url, server.key) == ("http://127.0.0.1:8080/v1", "sk-1234567890")


@pytest.mark.parametrize("key", ["sk-schlüssel", "sk-\u202eabc", "sk-a\nb"])
def test_a_key_that_no_header_carries_is_refused_unseen(monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(InputError, match="the key in OPENAI_API_KEY holds a character that no key has") as error:
        Server.of("https://api.openai.com/v1", "m")
    assert key not in str(error.value)
