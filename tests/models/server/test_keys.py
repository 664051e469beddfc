"""To whom a key goes: to nobody that only a recipe names, unless the user has named that host for it."""

import logging
import re
from base64 import b64encode
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from command import Command
from loopback import Loopback, response
from opened import recipe_file, recipe_of
from space import SPACE

import lmkbc
from lmkbc import InputError, LmkbcError
from lmkbc.generate.access import server_of, step_model
from lmkbc.models.server.address import Server
from lmkbc.models.server.openai_client import ChatClient
from lmkbc.testing import Run

KEYS = "LMKBC_KEYS"


CANARY, OTHER = "sk-canary-7f3a91c2", "gsk-canary-5521"


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    monkeypatch.setenv("OTHER_KEY", OTHER)


def server(table: dict[str, Any], **given: Any) -> Server:
    """The server that a recipe's table and the command line come to."""
    run = Run(workspace=SPACE, edition=SPACE.edition("mini"), servers=given)
    return server_of(step_model({"model": "m"} | table, "ask"), run, ChatClient, run.store())


@pytest.mark.parametrize(
    ("table", "given", "named", "key"),
    [
        ({}, {}, "", CANARY),  # the key's own provider
        ({"base_url": "https://api.openai.com/v1"}, {}, "", CANARY),
        ({}, {"base_url": "https://mine.example/v1"}, "", CANARY),
        ({"base_url": "https://theirs.example/v1"}, {"base_url": "https://mine.example/v1"}, "", CANARY),
        ({"base_url": "https://theirs.example/v1"}, {}, "theirs.example=OPENAI_API_KEY", CANARY),
        ({"base_url": "https://theirs.example/v1"}, {}, "a.example=X,THEIRS.example=OTHER_KEY", OTHER),
        ({"base_url": "https://theirs.example/v1", "key_env": "OTHER_KEY"}, {}, "theirs.example=OTHER_KEY", OTHER),
        ({}, {"base_url": "https://mine.example/v1"}, "mine.example=OTHER_KEY", OTHER),
        ({"base_url": "http://127.0.0.1:9/v1"}, {}, "", ""),
        ({"base_url": "http://127.0.0.1:9/v1", "key_env": "OTHER_KEY"}, {}, "", ""),
        ({"base_url": "http://127.0.0.1:9/v1"}, {"base_url": "http://127.0.0.2:9/v1"}, "", CANARY),
    ],
)
def test_a_key_goes_where_the_user_named_it_for(
    table: dict[str, str], given: dict[str, str], named: str, key: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(KEYS, named)
    assert server(table, store=tmp_path / "s.sqlite", **given).key == key


@pytest.mark.parametrize(
    ("table", "named", "said"),
    [
        ({"base_url": "https://theirs.example/v1"}, "", "LMKBC_KEYS=theirs.example=OPENAI_API_KEY"),
        ({"base_url": "https://theirs.example/v1", "key_env": "OTHER_KEY"}, "", "LMKBC_KEYS=theirs.example=OTHER_KEY"),
        ({"base_url": "https://theirs.example/v1"}, "other.example=OPENAI_API_KEY", "is sent no key"),
        ({"base_url": "https://api.openai.com.theirs.example/v1"}, "", "is sent no key"),
        ({"base_url": "http://api.openai.com/v1"}, "", "is sent no key"),
        ({"base_url": "https://theirs.example/v1"}, "theirs.example=UNSET_KEY", "set the environment variable UNSET_K"),
        ({"base_url": "https://theirs.example/v1"}, "theirs.example", "LMKBC_KEYS: 'theirs.example' is not HOST=VARIA"),
    ],
)
def test_a_recipe_alone_gets_no_key(
    table: dict[str, str], named: str, said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(KEYS, named)
    with pytest.raises(InputError) as error:
        server(table, store=tmp_path / "s.sqlite")
    assert said in str(error.value)
    assert CANARY not in str(error.value) + OTHER


def test_the_environment_comes_before_a_recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Loopback() as mine, Loopback() as theirs:
        recipe = recipe_file(tmp_path / "theirs.toml", {"component": "chat", "model": "m", "base_url": theirs.url})
        monkeypatch.setenv("OPENAI_BASE_URL", mine.url)
        given: dict[str, Any] = {"edition": "mini", "system": str(recipe), "limit": 2, "store": tmp_path / "s.sqlite"}
        lmkbc.predict("val", out=tmp_path / "mine", **given)
        assert (mine.served, theirs.served) == (2, 0)
        monkeypatch.delenv("OPENAI_BASE_URL")
        lmkbc.predict("val", out=tmp_path / "theirs", **given)
    assert (mine.served, theirs.served) == (2, 2)
    assert all(CANARY in head for head in mine.headers)
    assert not any(CANARY in head for head in theirs.headers)


def test_plain_http_is_warned_of_beyond_this_machine(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    for url in ("http://localhost:1/v1", "http://[::1]:1/v1", "http://127.8.8.8:1/v1", "https://far.example/v1"):
        server({}, base_url=url, store=tmp_path / "s.sqlite")
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]
    for _ in range(3):
        server({}, base_url="http://plain.example:8000/v1", store=tmp_path / "s.sqlite")
    (record,) = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert record.getMessage().startswith("plain.example is asked over http: ")


@pytest.mark.parametrize("name", ["model", "Model", "n", "messages", "prompt", "max_tokens", "seed", "best_of"])
def test_a_recipe_cannot_set_the_fields_of_a_request_that_follow_from_others(name: str) -> None:
    with pytest.raises(InputError, match=rf"sampling: extra\.{name} is a field of requests that is set otherwise"):
        recipe_of({"component": "chat", "model": "m", "sampling": {"extra": {name: 100}}})
    with pytest.raises(InputError, match=rf"extra\.{name} is a field"):
        step_model({"component": "chat", "model": "m", "extra": {name: 1}}, "ask")


def test_a_missing_key_is_asked_for_where_it_can_be_given(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    with Loopback(change=lambda *_: (401, "Who are you?")) as loopback:
        table = {"component": "chat", "model": "m", "base_url": loopback.url}
        recipe = recipe_file(tmp_path / "theirs.toml", table)
        given: dict[str, Any] = {"edition": "mini", "system": str(recipe), "limit": 2, "store": tmp_path / "s.sqlite"}
        way = "put it into the environment variable OPENAI_API_KEY"
        said = re.escape(f"{loopback.url} was sent no key and wants one (401: Who are you?): {way}")
        with pytest.raises(LmkbcError, match=f"^{said}$"):
            lmkbc.predict("val", base_url=loopback.url, out=tmp_path / "a", **given)
        more = re.escape(" and give the address with --base-url, or set LMKBC_KEYS=127.0.0.1=VARIABLE")
        with pytest.raises(LmkbcError, match=f"^{said}{more}$"):
            lmkbc.predict("val", out=tmp_path / "b", **given)


STRANGERS = [
    "https://evil.example/v1",
    "http://evil.example/v1",
    "https://api.openai.com.evil.example/v1",
    "https://api.openai.com:80@evil.example/v1",
    "https://evil.example/https://api.openai.com/v1",
    "https://evil.example\\@api.openai.com/v1",
    "https://evil.example#@api.openai.com/v1",
    "https://evil.example?@api.openai.com/v1",
    "https://api.openai.com./v1",
    "https://xapi.openai.com/v1",
    "https://openai.com/v1",
    "http://api.openai.com/v1",
    "http://localhost.evil.example/v1",
    "http://127.0.0.1.evil.example/v1",
    "http://0.0.0.0:80/v1",
    "http://2130706433/v1",
    "http://[::ffff:192.0.2.1]/v1",
    "http://127.1/v1",
    "https://ａｐｉ.openai.com/v1",
    "ftp://api.openai.com/v1",
]


HERE = ["http://127.0.0.1:9/v1", "http://localhost:9/v1", "http://[::1]:9/v1"]


@pytest.mark.parametrize("wanted", ["", "OPENAI_API_KEY", "PATH"])
@pytest.mark.parametrize("url", [*STRANGERS, *HERE])
def test_a_recipe_gets_no_key_whatever_its_address_looks_like(
    url: str, wanted: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(KEYS, raising=False)
    table, store = {"base_url": url, "key_env": wanted}, tmp_path / "s.sqlite"
    if url in HERE:
        assert server(table, store=store).key == ""
        return
    with pytest.raises(InputError) as error:
        server(table, store=store)
    assert CANARY not in str(error.value)


SECRET = "sk-proj/ca+na=ry 7f3a"
ECHOES = {
    "a redirect": lambda key: response(b"", 302, f"Location: https://x.example/v1?key={key}"),
    "a redirect, encoded": lambda key: response(b"", 307, f"Location: /v1?key={quote(key, safe='')}&n=1"),
    "a redirect, small letters": lambda key: response(b"", 308, f"Location: /{quote(key, safe='').lower()}"),
    "a long redirect": lambda key: response(b"", 301, f"Location: /{'x' * 190}{key}"),
    "an error": lambda key: response({"error": {"message": f"wrong key {key}"}}, 400),
    "an error of PHP": lambda key: response(rb'{"error":{"message":"%s"}}' % key.replace("/", r"\/").encode(), 401),
    "an escaped error": lambda key: response(
        b'{"error":{"message":"%s"}}' % "".join(f"\\u{ord(sign):04x}" for sign in key).encode(), 403
    ),
    "an error's code": lambda key: response({"error": {"message": "no", "code": key}}, 200),
    "a header in base64": lambda key: response({"error": f"Basic {b64encode(key.encode()).decode()}"}, 400),
    "a page": lambda key: response(f"<title>{key}</title>".encode(), 500),
    "a model": lambda key: response({"model": key, "choices": [{"message": {"content": "x"}}]}),
    "a list": lambda key: response([{"error": {"message": key}}], 429),
}


@pytest.mark.parametrize("echo", ECHOES)
def test_a_server_that_echoes_the_key_does_not_have_it_printed(
    echo: str, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    table = {"component": "chat", "model": "m", "limits": {"total_wait": 0.0}}
    recipe = recipe_file(tmp_path / "r.toml", table)
    with Loopback(fault=None) as server:
        server.respond = lambda _: ECHOES[echo](SECRET)  # type: ignore[method-assign]
        words = ("--edition", "mini", "--split", "val", "--system", recipe, "--base-url", server.url, "--limit", 1)
        for more in ((), ("--json",)):
            _, shown, told = command("predict", *words, "--out", f"run{len(more)}", *more)
            written = shown + told + "".join(path.read_text("utf-8", "replace") for path in Path().glob("run*/*.json"))
            for form in (SECRET, quote(SECRET, safe=""), b64encode(SECRET.encode()).decode(), "sk-proj"):
                assert form.casefold() not in written.casefold(), written
