import asyncio
import sqlite3
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from stand_in import FAULTS, REFUSALS, SLOW, STATUSES, WAYS, StandIn, item

from lmkbc import InputError, LmkbcError
from lmkbc.link.linker import Linker
from lmkbc.link.search import Wikidata
from lmkbc.link.wikidata import Client
from lmkbc.testing import Candidate, CandidateSet, Query

CONTACT = "Jane Doe, jane@example.org"
PATIENT, HASTY = 60.0, 1.5
"""Seconds until the client hangs up: beyond what a busy machine adds to any answer; short where the server is slow."""
NAMES = [f"Name {i}" for i in range(60)]
WORLD = {name: [f"Q{i + 1000}", f"Q{i + 2000}"] for i, name in enumerate(NAMES)}
ITEMS = {qid: item(qid, name, ["Q4022"], links=3) for name, ids in WORLD.items() for qid in ids}
ITEMS["Q4022"] = item("Q4022", "river", above=["Q47521"])
ITEMS["Q47521"] = item("Q47521", "stream", above=["Q355304"])
ITEMS["Q355304"] = item("Q355304", "watercourse")


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


def client(stand_in: StandIn, **settings: Any) -> Client:
    return Client(CONTACT, stand_in.url, **{"rate": 1000, "patience": 6.0, "timeout": PATIENT, **settings})


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "cache.sqlite"


def test_a_good_citizen(cache: Path) -> None:
    with StandIn(WORLD, ITEMS, delay=0.02) as stand_in:
        found = Wikidata(client(stand_in), cache).search([*NAMES, *map(str.upper, NAMES), *NAMES])
    assert all([hit.id for hit in found[name]] == WORLD[name] == [h.id for h in found[name.upper()]] for name in NAMES)
    hit = found["Name 3"][0]
    assert (hit.label, hit.name, hit.popularity) == ("Name 3", "Name 3", 3)
    assert hit.classes == ("Q4022", "Q47521", "Q355304")
    assert stand_in.most_at_once == 3
    assert max(stand_in.searched.values()) == 1
    assert len(stand_in.searched) == len(NAMES)
    assert max(map(len, stand_in.groups)) == 50
    assert max(Counter(qid for group in stand_in.groups for qid in group).values()) == 1
    assert all("User-Agent: lmkbc/" in head and CONTACT in head for head in stand_in.headers)
    assert all("gzip" in head for head in stand_in.headers)


@pytest.mark.parametrize("fault", [*STATUSES, *(way for way in WAYS if way != "silence"), "an id that is a number"])
def test_every_fault_passes_without_losing_a_string(cache: Path, fault: str) -> None:
    names = NAMES[:12]
    every = 8 if fault in SLOW else 3
    with StandIn(WORLD, ITEMS, fault=lambda number, _: fault if number % every == 1 else None) as stand_in:
        deadline = HASTY if fault in SLOW else PATIENT
        found = Wikidata(client(stand_in, deadline=deadline), cache).search(names)
    assert {name: [hit.id for hit in hits] for name, hits in found.items()} == {name: WORLD[name] for name in names}
    assert stand_in.faults[fault] > 1
    assert max(stand_in.searched.values()) == 1, "an answered string was asked again"


@pytest.mark.whole(
    but=[
        "429",
        "500",
        "a list",
        "null",
        "nothing",
        "HTML",
        "an error without a code",
        "no hits but null",
        "hits that are an object",
    ]
)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_that_stays_is_a_failure_and_never_cached_as_an_answer(cache: Path, fault: str) -> None:
    with StandIn(WORLD, ITEMS, fault=lambda *_: fault) as stand_in:
        deadline = 0.5 if fault in SLOW else PATIENT
        with pytest.raises(LmkbcError, match="did not answer for 'Name 1'"):
            Wikidata(client(stand_in, patience=0.5, deadline=deadline), cache).search(["Name 1"])
        stand_in.fault = lambda _, params: fault if "ids" in params else None
        with pytest.raises(LmkbcError, match=r"did not answer for 'Q"):
            Wikidata(client(stand_in, patience=0.5, deadline=deadline), cache).search(["Name 1"])
        stand_in.fault = lambda *_: None
        found = Wikidata(client(stand_in), cache).search(["Name 1"])["Name 1"]
    assert [(hit.id, hit.classes[0]) for hit in found] == [(qid, "Q4022") for qid in WORLD["Name 1"]]


def test_what_never_answers_is_given_up_in_bounded_time_and_the_rest_is_kept(cache: Path) -> None:
    def fault(number: int, params: Any) -> str | None:
        return "503" if params.get("search") == "Name 5" else None

    with StandIn(WORLD, ITEMS, fault=fault) as stand_in:
        with pytest.raises(LmkbcError, match=r"did not answer for 'Name 5' \(HTTP 503\)"):
            Wikidata(client(stand_in), cache).search(NAMES[:10])
        assert stand_in.faults["503"] == 6
        stand_in.fault = lambda number, params: None
        kept = sum(stand_in.searched.values())
        assert kept >= 5
        Wikidata(client(stand_in), cache).search(NAMES[:10])
    assert sum(stand_in.searched.values()) == 10


@pytest.mark.timeout(60)
@pytest.mark.parametrize(("fault", "told"), [("maxlag", "the database lags"), ("an endless wish", "HTTP 503")])
def test_a_long_retry_after_is_not_waited_for_beyond_patience(cache: Path, fault: str, told: str) -> None:
    with StandIn(WORLD, ITEMS, fault=lambda *_: fault) as stand_in:
        asked = Wikidata(client(stand_in, patience=0.5), cache)
        with pytest.raises(LmkbcError, match=told):
            asked.search(["Name 1"])
        stand_in.fault = lambda *_: None
        assert len(asked.search(["Name 1"])["Name 1"]) == 2


def test_lag_holds_back_every_request(cache: Path) -> None:
    with StandIn(WORLD, fault=lambda number, _: "maxlag" if number == 1 else None) as stand_in:
        started = time.monotonic()
        Wikidata(client(stand_in), cache).search(NAMES[:9])
        assert time.monotonic() - started > 0.05


def test_the_rate_is_bounded(cache: Path) -> None:
    with StandIn(WORLD) as stand_in:
        started = time.monotonic()
        Wikidata(client(stand_in, rate=50), cache).search(NAMES[:20])
        assert time.monotonic() - started > 19 / 50


@pytest.mark.parametrize("status", REFUSALS)
def test_a_refusal_is_final(cache: Path, status: str) -> None:
    with StandIn(WORLD, fault=lambda *_: status) as stand_in:
        with pytest.raises(LmkbcError, match=f"HTTP {status}: check the API URL and your contact"):
            Wikidata(client(stand_in), cache).search(["Name 1"])
        assert stand_in.served <= 3


def test_answers_and_no_hits_are_cached_for_good_and_refreshed_on_demand(cache: Path) -> None:
    with StandIn(WORLD, ITEMS) as stand_in:
        first = Wikidata(client(stand_in), cache).search(["Name 1", "Nobody"])
        cold = stand_in.served
        assert Wikidata(client(stand_in), cache).search(["name 1", "NOBODY"])["name 1"] == first["Name 1"]
        assert stand_in.served == cold
        stand_in.world["nobody"] = ["Q1001"]
        fresh = Wikidata(client(stand_in), cache, refresh=True)
        assert [hit.id for hit in fresh.search(["Nobody"])["Nobody"]] == ["Q1001"]
        fresh.search(["nobody"])
        assert stand_in.searched["nobody"] == 2
        other = Wikidata(client(stand_in), cache, api_url="https://mirror.example/api.php")
        other.search(["Nobody"])
        assert stand_in.searched["nobody"] == 3, "another API must not share answers"


@pytest.mark.timeout(60)
def test_offline_answers_from_the_cache_or_names_what_is_missing(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with StandIn(WORLD, ITEMS) as stand_in:
        online = Wikidata(client(stand_in), cache).search(["Name 1", "Nobody"])

    def no_sockets(*_: object, **__: object) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr("socket.socket.connect", no_sockets)
    monkeypatch.setattr(asyncio, "run", no_sockets)
    offline = Wikidata(None, cache)
    assert offline.search(["Name 1", "Nobody"]) == online
    with pytest.raises(
        LmkbcError, match=r"offline, and the cache lacks search answers for 2 names or ids, first 'name 2'"
    ):
        offline.search(["Name 1", "Name 2", "Name 3"])


def test_a_partial_one_answers_from_the_cache_and_lacks_the_rest(cache: Path) -> None:
    with StandIn(WORLD, ITEMS) as stand_in:
        online = Wikidata(client(stand_in), cache).search(["Name 1"])
    partial = Wikidata(None, cache, partial=True)
    assert partial.search(["Name 1", "Name 2"]) == online | {"Name 2": ()}
    assert set(partial.entities([WORLD["Name 1"][0], "Q999999"])) == {WORLD["Name 1"][0]}


def test_merged_missing_and_impossible_entities(cache: Path) -> None:
    items = {"Q2": item("Q2", "Inn", ["Q4022"]), **ITEMS}
    with StandIn({"Inn": ["Q1", "Q2", "Q404"]}, items, merged={"Q1": "Q2"}) as stand_in:
        wikidata = Wikidata(client(stand_in), cache)
        found = wikidata.entities(["Q1", "Q2", "Q404", "Q99999999999"])
        assert [hit and hit.id for hit in found.values()] == ["Q2", "Q2", None, None]
        assert [hit.id for hit in wikidata.search(["Inn"])["Inn"]] == ["Q2"]
        assert wikidata.labels(["Q1", "Q404", "Q2"]) == {"Q1": "Inn", "Q2": "Inn"}


def test_a_linker_asks_cold_and_not_warm(cache: Path, relations) -> None:
    sets = [CandidateSet(Query(str(i), "rivers"), (Candidate(NAMES[i % 20]), Candidate("Nobody"))) for i in range(40)]
    with StandIn(WORLD, ITEMS) as stand_in:
        cold = list(Linker(relations, search=Wikidata(client(stand_in), cache)).link(sets))
        asked = stand_in.served
        warm = list(Linker(relations, search=Wikidata(client(stand_in), cache)).link(sets))
        assert stand_in.served == asked
    assert sorted(stand_in.searched) == sorted([*map(str.casefold, NAMES[:20]), "nobody", "nobody river"])
    assert cold == warm
    assert [group.candidates[0].id for group in cold[:2]] == ["Q1000", "Q1001"]


def test_the_contact_may_come_from_the_environment(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    monkeypatch.setenv("LMKBC_CONTACT", "Lab, https://lab.example.org\nX-Evil: 1")
    with StandIn(WORLD, ITEMS) as stand_in:
        Wikidata(Client(None, stand_in.url, rate=1000), cache).search(NAMES[:1])
    assert all("Lab, https://lab.example.org X-Evil: 1" in head for head in stand_in.headers)
    for contact in ("", "Jane Doe", "  "):
        monkeypatch.setenv("LMKBC_CONTACT", contact)
        with pytest.raises(InputError, match="set LMKBC_CONTACT"):
            Client()
    with pytest.raises(InputError, match="write it in ASCII"):
        Client("Zoë, zoe@example.org")
    with pytest.raises(InputError, match="no web address"):
        Client(CONTACT, "ftp://example.org")
    for url in ("http://", "https:///w/api.php", "http://localhost:99999/"):
        with pytest.raises(InputError, match="no web address"):
            Client(CONTACT, url)


def rows(cache: Path) -> dict[tuple[str, str], bytes]:
    with closing(sqlite3.connect(cache)) as db:
        return {(kind, key): answer for kind, key, answer in db.execute("SELECT kind, key, answer FROM answers")}


def spoil(cache: Path, sql: str, *values: object) -> None:
    with closing(sqlite3.connect(cache)) as db, db:
        db.execute(sql, values)


BAD_ROWS = {
    "an id that is a number": b'[{"id":5}]',
    "two ids in one": b'[{"id":"Q1|Q2"}]',
    "an id that is a path": b'[{"id":"../../x"}]',
    "no JSON": b"\xff{",
    "a number": 5,
}


@pytest.mark.parametrize("row", BAD_ROWS.values(), ids=BAD_ROWS)
def test_a_bad_cached_row_is_asked_anew(cache: Path, row: object) -> None:
    with StandIn(WORLD, ITEMS) as stand_in:
        first = Wikidata(client(stand_in), cache).search(NAMES[:3])
        sound = rows(cache)
        spoil(cache, "UPDATE answers SET answer = ? WHERE key = 'name 1'", row)
        with pytest.raises(LmkbcError, match="offline, and the cache lacks search answers for 1 names"):
            Wikidata(None, cache).search(NAMES[:3])
        assert Wikidata(client(stand_in), cache).search(NAMES[:3]) == first
        assert stand_in.searched == {"name 0": 1, "name 1": 2, "name 2": 1}
        assert rows(cache) == sound
        assert Wikidata(None, cache).search(NAMES[:3]) == first


def test_a_cut_reply_is_asked_for_to_its_end(cache: Path) -> None:
    class Cut(StandIn):
        def answer(self, params: Mapping[str, str]) -> dict[str, Any]:
            answer = super().answer(params)
            if "entities" in answer:
                answer["entities"] = dict(list(answer["entities"].items())[:7])
            return answer

    with Cut(WORLD, ITEMS) as stand_in:
        found = Wikidata(client(stand_in), cache).entities([f"Q{number}" for number in range(1000, 1030)])
    assert [hit and hit.id for hit in found.values()] == [f"Q{number}" for number in range(1000, 1030)]


@pytest.mark.parametrize("text", ["Q1|Q2", "../x", "5", "q5", "Q0", "P31", ""])
def test_what_is_no_id_is_never_asked_for(cache: Path, text: str) -> None:
    with StandIn(WORLD, ITEMS) as stand_in, pytest.raises(InputError, match="is no QID"):
        Wikidata(client(stand_in), cache).entities([text])
    assert stand_in.served == 0


def test_a_cache_that_is_no_cache(tmp_path: Path) -> None:
    (tmp_path / "c").write_text("this is not a database " * 100)
    with pytest.raises(InputError, match="cannot serve as the linker's cache"):
        Wikidata(None, tmp_path / "c")
