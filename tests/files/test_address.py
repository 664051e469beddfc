"""Web addresses that are typed, or stand in a file: what cannot be asked is refused before anything is sent."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmkbc.errors import InputError
from lmkbc.files.fetch import download
from lmkbc.http import is_web_address
from lmkbc.models.server.address import Server

NONE = (
    "https://../x http://[:: https://\u202e/x https://a\r/x https://a..b/x x ftp://x/y file:///etc/passwd "
    f"http://127.0.0.1:99999/x http://x:0/ https://{'a' * 70}/x"
)


@pytest.mark.parametrize("url", [*NONE.split(" "), "", "http://x y/"])
def test_what_is_no_web_address_is_refused(url: str, tmp_path: Path) -> None:
    assert not is_web_address(url)
    with pytest.raises(InputError, match="is no http or https address"):
        download(url, ["0"], tmp_path / "x", "x")
    with pytest.raises(InputError, match="is no http or https address"):
        Server.of(url or "x", "m", offline=True)


@pytest.mark.parametrize("url", ["http://127.0.0.1:8080/v1", "http://[::1]:1/", "https://a.b", "https://münchen.de/ä"])
def test_what_is_one_is_taken(url: str) -> None:
    assert is_web_address(url)


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
