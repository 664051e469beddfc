"""A recipe is checked whole when it is read: what is wrong is told by file, table and setting, nothing is loaded."""

import json
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from command import Command
from loopback import Body, Loopback
from opened import CUTOFF, recipe_file
from space import SPACE

import lmkbc
from lmkbc import InputError
from lmkbc.recipe import read_file, read_recipe
from lmkbc.settings import changed, checked

CHAT = {"component": "chat", "model": "m"}
ROOT = Path(__file__).resolve().parents[1]


TWICE = {"component": "llmke23/prompt"}
STEP = {"name": "account", "ask": "Tell of {{ subject }}:"}
CHAIN = {"ask": "It is told: {{ account }} So, {{ subject }} borders:", "steps": [STEP]}


def written(folder: Path, **parts: Any) -> Path:
    """A recipe's file."""
    return recipe_file(folder / "mine.toml", **{"generate": [CHAT], **parts})


def grouping(**table: Any) -> dict[str, Any]:
    """The parts of a recipe that differ: names are grouped."""
    return {"pool": {"component": "mave26/names", **table}}


def generating(table: dict[str, Any], component: str = "chat") -> dict[str, Any]:
    return {"generate": [{"component": component, **table}]}


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        (
            generating({"executor": "batch"}),
            "generator 'chat' has no setting 'executor': known are: any_model, backend",
        ),
        (
            generating({"limits": {"poll": 3.0}}),
            "generator 'chat' has no setting 'limits.poll': known are: concurrency",
        ),
        (generating({"closed_book": True}), "generator 'chat' has no setting 'closed_book' any more"),
        (generating({"prices": ["a", "b"]}), "generator 'chat': setting 'prices[0]' is 'a': give a number"),
        (generating({"prices": [1.0]}), "setting 'prices' is [1.0]: give a list of 2 numbers"),
        (generating({"sampling": {"samples": 0}}), "samples is 0: give 1 to 10,000"),
        (generating({"sampling": {"samples": 10**9}}), "samples is 1000000000: give 1 to 10,000"),
        (generating({"prices": 5}), "setting 'prices' is 5: give a list of 2 numbers"),
        (generating({"model": 5}), "generator 'chat': setting 'model' is 5: give a string"),
        (generating({"model": 5}, "masked"), "generator 'masked': setting 'model' is 5: give a string"),
        (generating({"model": 5}, "causal"), "generator 'causal': setting 'model' is 5: give a string"),
        (generating({"quantise": "4bits"}, "causal"), "setting 'quantise' is '4bits': did you mean '4bit'?"),
        (
            generating({"trust_remote_code": True}, "causal"),
            "'trust_remote_code' any more: no model's own code is run here",
        ),
        (generating({"revision": "a"}, "masked"), "'revision' any more: fetch that revision, and give its directory"),
        (generating({"device": "cpu"}, "masked"), "'device' any more: an accelerator is used if there is one"),
        (generating({"device": "cpu"}, "entity-masked"), "'device' any more: an accelerator is used if there is one"),
        (generating({"encoder": False}, "embedded"), "'encoder' any more: write evidence = [\"train\"] for false"),
        (generating({"use_train_features": True}, "embedded"), "'use_train_features' any more: write evidence = []"),
        (generating({"evidence": ["link"]}, "embedded"), "setting 'evidence[0]' is 'link': known are: encoder, train"),
        (generating({"evidence": ["encoder"]}, "embedded"), 'evidence "encoder" needs "train" beside it'),
        (
            generating({"relations": {"country-borders": 5}}),
            "generator 'chat': setting 'relations.country-borders' is 5: give a table",
        ),
        (
            generating({"relations": {"country-bordrs": {}}}),
            "relations names 'country-bordrs', which is no relation: d",
        ),
        (
            generating({"relations": {"country-borders": {"promt": {}}}}),
            "generator 'chat' has no setting 'relations.country-borders.promt': did you mean 'prompt'?",
        ),
        (
            generating({"relations": {"country-borders": {"prompt": {"tsk": ""}}}}),
            "generator 'chat': relations.country-borders.prompt has no setting 'tsk': did you mean 'task'?",
        ),
        (generating({"probe": "x"}, "masked"), "generator 'masked': setting 'probe' is 'x': give a table"),
        (
            generating({"probe": {"ensemble": "meen"}}, "masked"),
            "setting 'probe.ensemble' is 'meen': did you mean 'mea",
        ),
        (
            generating({"probe": {"top_k": {"*": "x"}}}, "masked"),
            "generator 'masked': setting 'probe.top_k.*' is 'x': give a whole number",
        ),
        (generating({"probe": {"top_k": {"rivers": 1}}}, "masked"), "probe.top_k names 'rivers', which is no relation"),
        (
            generating({"probe": {"top_k": 0}}, "masked"),
            "generator 'masked': probe: top_k is 0: give a whole number",
        ),
        (
            generating({"relations": {"country-borders": {"shots": {"k": "five"}}}}),
            "relations.country-borders.shots: setting 'k' is 'five'",
        ),
        (generating({"each": []}), "each is a list of tables"),
        (generating({"each": ["a"]}), "each is a list of tables"),
        (generating({"prompt": "short"}), "setting 'prompt' is 'short': give a table"),
        (generating({"each": [{"shots": 5}]}), "source 'source 1': setting 'shots' is 5: give a table"),
        (generating({"only": ["country-bordrs"]}), "did you mean 'country-borders'"),
        (generating({"only": "country-borders"}), "setting 'only' is 'country-borders': give a list of strings"),
        (
            generating({"prompt": {"steps": [{"name": "slot", "items": ["a"]}]}}),
            "nothing reads what step 'slot' fills",
        ),
        (generating({"prompt": {"ask": "{{ slot }}"}}), "ask reads {{ slot }}"),
        (generating({"prompt": {"ask": "{{ story }}", "steps": [STEP]}}), "ask reads {{ story }}"),
        (generating({"prompt": {**TWICE, "follow_up": "{{ text }}"}}), "follow_up reads {{ text }}"),
        (generating({"prompt": {**TWICE, "follow_up": "Sure?", "form": "completion"}}), "form 'completion'"),
        (generating({"prompt": {"expand": {"rounds": 0}}}), "rounds is 0: give 1 to 50"),
        (generating({"prompt": {"expand": {"names": 0}}}), "names is at least 1"),
        (
            generating({"prompt": {"expand": {"shown": 9}}}),
            "no setting 'prompt.expand.shown' any more: write it as names",
        ),
        (generating({"prompt": {"expand": {"component": "mdv26/expand", "until_new": 0}}}), "until_new is at least 1"),
        (
            generating({"prompt": {"expand": {"until_new": 2}}}),
            "no setting 'prompt.expand.until_new': 'mdv26/expand' has it",
        ),
        (
            generating({"shots": {"draw": "hash"}}),
            "no setting 'shots.draw': 'chironk26/shots' has it; name that as component",
        ),
        (
            generating({"verify": {"bare": True}}),
            "no setting 'verify.bare': 'prop22/facts' has it; name that as component",
        ),
        (
            {"select": {"rule": "two-stage"}},
            "unknown selection rule 'two-stage': it is 'chironk26/two-stage' now, in the",
        ),
        (
            {"select": {"rule": "ball", "support": 0.5}},
            "has no setting 'support': 'mdv26/ball' has it; name that as comp",
        ),
        (
            generating({"prompt": {"expand": {"ask": "Who else? {{ asked }}"}}}),
            "show the names so far with {{ found }}",
        ),
        (generating({"prompt": {"expand": {"ask": "{{ found }} {{ x }}"}}}), "expand.ask reads {{ x }}"),
        (
            generating({"prompt": {"ask": "{{ found }}", "steps": [{**STEP, "name": "found"}]}}),
            "a step is called 'found'",
        ),
        (generating({"prompt": {"component": "jhh25/prompt", "retries": 51}}), "retries is 51: give 0 to 50"),
        (generating({"sampling": {"samples": 5, "at_first": 5}}), "at_first is 5: give fewer draws than samples"),
        (generating({"verify": {"placebos": -1}}), "placebos"),
        ({"clean": {"shape": {"words": 0}}}, "clean: shape: longest and words are at least 1"),
        ({"clean": {"shape": {"only": ["stock-exchnge"]}}}, "clean.shape.only names 'stock-exchnge'"),
        (generating({"prompt": CHAIN, "ranking": {}}, "causal"), "a ranking has none"),
        (generating({"verify": {"variants": []}}), "variant"),
        (generating({"verify": {"variants": ["mirror"]}}), "setting 'verify.variants[0]' is 'mirror'"),
        (generating({"verify": {"words": ["Yes", "yes"]}}), "words"),
        (generating({"verify": {"shots": -1}}), "shots"),
        (generating({"verify": {"samples": 0}}), "samples"),
        (generating({"verify": {"temperature": -1.0}}), "temperature"),
        (generating({"verify": {"only": ["country-bordrs"]}}), "did you mean 'country-borders'"),
        (generating({"context": {"provider": "titles"}}), "lacks path"),
        (generating({"context": {"provider": "web"}}), "context"),
        (generating({"context": {"overlap": 300}}), "overlap"),
        (generating({"context": {"passages": 0}}), "passages"),
        (grouping(ask={"component": "chatt"}), "pool: ask: component is 'chatt': did you mean 'chat'"),
        (grouping(ask={"component": "chat", "modl": "m"}), "pool: ask has no setting 'modl': did you mean 'model'"),
        (grouping(only=["area"]), "pool needs ask: give it a value"),
        (grouping(ask={"component": "chat"}, only=["stock-exchnge"]), "pool.only names 'stock-exchnge'"),
        ({"pool": {"only": ["area"]}}, "pool has no setting 'only': 'mave26/names' has it; name that as component"),
        ({"group": {"only": ["area"]}}, "no setting 'group' any more: write its settings, also component, in [pool]"),
        ({"select": {"rule": "expected-f1", "missing": 1.0}}, "only a rule that 'lmkbc tune' has learned reads it"),
        (
            {
                "select": {
                    "rule": "abstention-threshold",
                    "threshold": 1.0,
                    "inner": {"rule": "expected-f1", "missing": 1.0},
                }
            },
            "select: setting 'inner.missing' has no effect",
        ),
        (grouping(component="mave26/nams"), "pool: component is 'mave26/nams': did you mean 'mave26/names'?"),
        (grouping(component="mave26/questions"), "pool: component is 'mave26/questions': did you mean"),
        (generating({"sampling": {"heat": 1}}), "no setting 'sampling.heat': known are: "),
        (generating({"shot": {}}), "no setting 'shot'"),
        (generating({"hidden_states": {"depth": 0}}, "embedded"), "depth is 0"),
        (generating({"hidden_states": {"deep": 0.5}}, "embedded"), "hidden_states has no setting 'deep'"),
        (generating({"hidden_states": {"shots": {"k": "no"}}}, "embedded"), "hidden_states: setting 'shots.k' is 'no'"),
        (generating({"evidence": []}, "embedded"), "leaves nothing to learn from"),
        (generating({"modl": "m"}), "generator 'chat' has no setting 'modl': did you mean 'model'?"),
        (generating({"prompt": {"frm": "chat"}}), "generator 'chat' has no setting 'prompt.frm': did you mean 'form'"),
        (
            generating({"prompt": {"steps": [{"name": "a", "items": [1]}]}}),
            "generator 'chat': setting 'prompt.steps[0].items[0]' is 1: give a string",
        ),
        (
            generating({"prompt": {"task": "{{ x }}"}}),
            "generator 'chat': prompt: task reads {{ x }}: known are: cardinality,",
        ),
        (generating({"shots": {"kk": 1}}), "generator 'chat' has no setting 'shots.kk': did you mean 'k'?"),
        (generating({"shots": {"empty": "trian"}}), "setting 'shots.empty' is 'trian': give a number or 'train'"),
        (
            generating({"limits": {"timout": 1}}),
            "generator 'chat' has no setting 'limits.timout': did you mean 'timeout",
        ),
        (generating({"limits": {"concurrency": True}}), "setting 'limits.concurrency' is True: give a whole number"),
        (
            generating({"verify": {"variant": []}}),
            "generator 'chat' has no setting 'verify.variant': did you mean 'variants'?",
        ),
        (generating({"verify": "x"}), "generator 'chat': setting 'verify' is 'x': give a table"),
        (
            generating({"each": [{}, {"promt": {}}]}),
            "generator 'chat', source 'source 2' has no setting 'promt': did you mean 'prompt'?",
        ),
        (
            generating({"each": [{"name": "a", "limits": {"timout": 1}}]}),
            "generator 'chat', source 'a' has no setting 'limits.timout': did you mean 'timeout'?",
        ),
        (generating({"name": 5, "each": [{}]}), "generator 'chat': setting 'name' is 5: give a string"),
        (generating({"each": 5}), "generator 'chat': each is a list of tables"),
        (generating({}, "caht"), "unknown generator 'caht': did you mean 'chat'?"),
        ({"generate": [{"component": ["chat"]}]}, "unknown generator ['chat']: did you mean 'chat'?"),
        ({"generate": [5]}, "setting 'generate[0]' is 5: give a table"),
        ({"generate": []}, "generate is empty: give a table [[generate]]"),
        ({"link": {"strategy": {}}}, "link has no setting 'strategy': did you mean 'strategies'?"),
        ({"link": 5}, "setting 'link' is 5: give a table"),
        (
            {"link": {"strategies": ["frist"]}},
            "strategies: unknown linking strategy 'frist': did you mean 'first'?",
        ),
        ({"link": {"ask": {"component": "chatt"}}}, "link: ask: component is 'chatt': did you mean 'chat'?"),
        ({"link": {"ask": {"component": "chat", "modl": 1}}}, "link: ask has no setting 'modl': did you mean 'model'?"),
        ({"link": {"strategies": {"rivers": []}}}, "link names 'rivers', which is no relation"),
        ({"pool": {"wights": {}}}, "pool has no setting 'wights': did you mean 'weights'?"),
        ({"pool": {"per": "meen"}}, "pool: setting 'per' is 'meen'"),
        ({"pool": {"weights": {"a": "x"}}}, "pool: setting 'weights.a' is 'x': give a number"),
        ({"clean": {"subjct": True}}, "clean has no setting 'subjct': did you mean 'subject'?"),
        ({"clean": {"subject": "no"}}, "clean: setting 'subject' is 'no': give true or false"),
        ({"select": {**CUTOFF, "treshold": 1}}, "select: rule cutoff has no setting 'treshold': did you mean 'thresh"),
        ({"select": {"rule": "cutoff"}}, "select: rule cutoff needs threshold: give it a value"),
        ({"select": {"rule": "cutoff", "threshold": True}}, "rule cutoff: setting 'threshold' is True: give a number"),
        (
            {"select": {"rule": "verified", "inner": {"rule": "cutoff", "threshold": "x"}}},
            "select: rule verified: setting 'inner': rule cutoff: setting 'threshold' is 'x': give a number",
        ),
        (
            {"select": {"rule": ["cutoff"]}},
            "select: a selection table needs rule = NAME, one of abstention-threshold, ",
        ),
        ({"select": {**CUTOFF, "relations": 5}}, "select.relations is 5: give a table"),
        ({"select": {**CUTOFF, "relations": {"x": 5}}}, "select.relations: setting 'x' is 5: give a table"),
        (
            {"select": {**CUTOFF, "relations": {"rivrs": CUTOFF}}},
            "select.relations names 'rivrs', which is no relation",
        ),
        (
            {"select": {**CUTOFF, "relations": {"CountryBordersCountry": {"rule": "cutof"}}}},
            "select.relations.CountryBordersCountry: unknown selection rule 'cutof': did you mean 'cutoff'?",
        ),
        (
            {"select": {**CUTOFF, "relations": {"country-borders": CUTOFF, "CountryBordersCountry": CUTOFF}}},
            "select.relations names country-borders twice: 'CountryBordersCountry' is another name of it",
        ),
        ({"published": {"2023": 0.5}}, "published names '2023': give an edition and a split, as in '2023/val', and"),
        ({"published": {"2023/val": 62.5}}, "published.2023/val is 62.5: give a macro-F1 from 0 to 1"),
        ({"published": {"2023/val": "x"}}, "setting 'published.2023/val' is 'x': give a number"),
        ({"wording": "theirs"}, "setting 'wording' is 'theirs': did you mean 'authors'?"),
        (
            {"wording": "authors"},
            "wording is 'authors', whose words are not on this machine: run 'lmkbc systems fetch m",
        ),
        ({"differs": "much"}, "setting 'differs' is 'much': give a list of strings"),
        ({"year": "2023"}, "setting 'year' is '2023': give a whole number"),
        ({"publsihed": {}}, "a recipe has no setting 'publsihed': did you mean 'published'?"),
    ],
)
def test_what_is_wrong_is_told_when_a_recipe_is_read(
    command: Command, tmp_path: Path, parts: dict[str, Any], said: str
) -> None:
    path = written(tmp_path, **parts)
    with pytest.raises(InputError) as error:
        read_recipe(SPACE, str(path))
    assert str(error.value).startswith(f"{path}: ")
    assert str(error.value).count(str(path)) == 1
    assert said in str(error.value)
    assert said in command.fails("systems", "check", "embedded", path)


@dataclass(frozen=True)
class Inner:
    k: int = 1

    def __post_init__(self) -> None:
        if self.k < 0:
            raise ValueError(f"k is {self.k}: give at least 0")


@dataclass(frozen=True)
class Outer:
    names: tuple[str, ...] = ()
    inner: Inner | None = None


def test_settings_in_place_of_others_are_checked_alike() -> None:
    outer = checked(Outer, {"inner": {"k": 2}}, "it")
    assert changed(outer, {"names": ["a"]}, "it") == Outer(("a",), Inner(2))
    for table, said in (
        ({"inner": {"l": 2}}, "it has no setting 'inner.l': known are: k"),
        ({"inner": 2}, "it: setting 'inner' is 2: give a table"),
        ({"inner": {"k": -1}}, "it: inner: k is -1: give at least 0"),
        ({"names": "a"}, "it: setting 'names' is 'a': give a list of strings"),
    ):
        with pytest.raises(InputError, match=said):
            changed(outer, table, "it")


def test_the_authors_words_come_before_the_recipe_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lmkbc.recipe.fetched_frames", lambda system: tmp_path / system / "frames.toml")
    (tmp_path / "mine").mkdir()
    frames = '[area]\nblock = "What is the size of {{ subject }}?"\n[parts.second."*"]\nblock = "And {{ subject }}?"\n'
    (tmp_path / "mine" / "frames.toml").write_text(frames)
    sources = [{"name": "first", "frames": "none.toml"}, {"name": "second"}]
    path = written(tmp_path, wording="authors", generate=[{**CHAT, "each": sources}, {"component": "prior"}])
    recipe = read_recipe(SPACE, str(path))
    assert [table["frames"] for table in recipe.tables["generate"]] == [str(tmp_path / "mine" / "frames.toml")] * 2
    first, second, _prior = recipe.generate
    assert [one.block for one in first.styles] == ["", "What is the size of {{ subject }}?"]
    assert [one.block for one in second.styles] == ["", "And {{ subject }}?"]


def test_published_systems_tell_how_they_differ() -> None:
    for name in SPACE.system_names():
        file = read_file(SPACE.recipe_path(name))
        assert bool(file.published) == bool(file.year), name
        if file.published:
            assert file.score is not None, name
            assert any(file.differences.values()) or name == "bl22-empty", name
            assert bool(file.reworded) == bool(file.source), name
            for one in (*file.differs, *file.shortcuts, *file.reworded):
                assert "systems fetch" not in one, f"{name}: words that can be fetched are of a kind of their own"


def test_the_bundled_recipes_make_sense(command: Command) -> None:
    bundled = sorted(str(path) for path in (ROOT / "lmkbc/systems").glob("*/recipe.toml"))
    names = [Path(path).parent.name for path in bundled]
    for given in (names, bundled):
        assert f"{len(bundled)} recipes make sense" in command.done("systems", "check", *given)[1]
    assert command("systems", "check", "prior")[2] == "1 recipe makes sense\n"


def test_a_server_says_what_it_offers_a_recipe(command: Command, tmp_path: Path) -> None:
    def few(asked: Body, _: Body) -> tuple[int, str] | None:
        return (400, "n must be at most 4") if asked.get("n", 1) > 4 else None

    path = recipe_file(tmp_path / "chat.toml", {"component": "chat", "model": "m", "sampling": {"samples": 20}})
    with Loopback(change=few) as server:
        server.tells = {"models": {"data": [{"id": "m", "max_model_len": 2048}]}}
        (offer,) = json.loads(command.done("systems", "check", path, "--base-url", server.url, "--json")[0])
        assert [body.get("n") for body in server.requests] == [None, 20, 16, 8, 4]
        told = command.done("systems", "check", path, "--base-url", server.url)[1]
    known = {"served": True, "lists": ["m"], "samples": 20, "choices": 4, "window": 2048, "logprobs": True}
    assert {name: offer[name] for name in known} == known
    assert "chat: each of 20 samples is asked for alone" in told
    with Loopback(ignores=("n", "logprobs")) as server:
        server.tells = {"models": {"data": [{"id": "other"}]}}
        shown, told = command.done("systems", "check", path, "--base-url", server.url)
    assert shown.splitlines()[1].split() == ["chat", "m", "no", "20", "1", "-", "no", "none", "no"]
    assert "m is none of the models that the server lists (other)" in told


def test_a_server_is_checked_by_the_fields_that_a_recipe_sends(command: Command, tmp_path: Path) -> None:
    sampling = {"temperature": 0.5, "seed": 3, "extra": {"top_k": 4}}
    asks = {"component": "chat", "model": "m", "sampling": sampling, "prompt": {"listing": "schema"}}
    path = recipe_file(tmp_path / "chat.toml", asks)
    with Loopback(rejects=("response_format",)) as server:
        (offer,) = json.loads(command.done("systems", "check", path, "--base-url", server.url, "--json")[0])
        assert server.requests[0].keys() >= {"response_format", "seed", "temperature", "top_k"}
    assert (offer["refused"], offer["streams"]) == (["response_format"], False)


def test_a_server_that_only_streams_is_named(command: Command, tmp_path: Path) -> None:
    def streams(asked: Body, _: Body) -> tuple[int, str] | None:
        return None if asked.get("stream") else (400, "This server only supports stream=true")

    path = recipe_file(tmp_path / "chat.toml", {"component": "chat", "model": "m"})
    with Loopback(change=streams) as server:
        shown = command.done("systems", "check", path, "--base-url", server.url)[0]
    assert shown.splitlines()[1].split()[-2:] == ["none", "yes"]


def test_recipes_are_checked_without_a_call_unless_a_server_is_given(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = recipe_file(tmp_path / "chat.toml", {"component": "chat", "model": "m"})
    with Loopback() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        assert command("systems", "check", path) == (0, "", "1 recipe makes sense\n")
        assert server.requests == []
    assert "are of a server: give --base-url too" in command.fails("systems", "check", path, "--model", "x")


def test_a_relation_is_asked_in_words_of_its_own_as_the_guide_says(command: Command, tmp_path: Path) -> None:
    guide = (ROOT / "docs" / "recipes.md").read_text()
    table = guide.partition("### The prompt of one relation")[2].split("```")[1].removeprefix("toml\n")
    parts = ('description = "x"', "[[generate]]", 'component = "chat"', 'model = "m"', "shots = { k = 5 }", table)
    path = tmp_path / "chat.toml"
    path.write_text("\n".join((*parts, "[select]", 'rule = "cutoff"', "threshold = 0.5")))
    asked = command.done("systems", "show", path, "--prompt", "Peru", "country-borders", "-e", "mini")[0]
    assert re.findall(r"^Which countries touch (.*) on land\?$", asked, re.MULTILINE)[2:] == ["Peru"]
    other = command.done("systems", "show", path, "--prompt", "Peru", "CountryHasOfficialLanguage", "-e", "mini")[0]
    assert (asked.count("[assistant]"), other.count("[assistant]")) == (2, 5)
    assert "on land" not in other


def test_a_table_in_python_is_a_recipe(tmp_path: Path) -> None:
    table = tomllib.loads((ROOT / "lmkbc/systems/prior" / "recipe.toml").read_text())
    runs = [
        lmkbc.predict("val", edition="mini", system=one, out=tmp_path / f"{n}")
        for n, one in enumerate(("prior", table))
    ]
    first, second = ((run.directory / "predictions.jsonl").read_bytes() for run in runs)
    assert first == second
    for wrong, told in (
        ({}, "system: lacks generate"),
        (table | {"name": "../x"}, "system: name is '../x'"),
        (table | {"selct": 1}, "system: a recipe has no setting 'selct': did you mean 'select'"),
    ):
        with pytest.raises(InputError, match=told):
            lmkbc.predict("val", edition="mini", system=wrong)


def test_a_question_needs_no_data_of_its_edition(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = recipe_file(tmp_path / "chat.toml", {"component": "chat", "model": "m", "shots": {"k": 5}})
    with Loopback(answer=lambda _: '["Na", "Cl"]') as server:
        answer = lmkbc.ask(
            "table salt",
            "CompoundHasParts",
            system=str(path),
            base_url=server.url,
            data=tmp_path,
            store=str(tmp_path / "s"),
        )
        (asked,) = server.requests
    assert ([one.object for one in answer.objects], answer.edition) == (["chlorine", "sodium"], "2023")
    assert all(turn["role"] != "assistant" for turn in asked["messages"])
    assert "No data of edition 2023 here" in caplog.text


@pytest.mark.parametrize(
    ("setting", "content", "told"),
    [
        ('context = { provider = "passages", path = "it.jsonl" }', None, "context file it.jsonl does not exist"),
        ('context = { provider = "titles", path = "it.jsonl" }', "{}", "it.jsonl, line 1: Object missing required fie"),
        ('context = { provider = "titles", path = "it.jsonl" }', "", "it.jsonl is empty"),
        ('context = { provider = "titles", path = "." }', None, ". is a directory: give a file"),
        ('shots = { path = "it.jsonl" }', None, "shots 'it.jsonl' is no file"),
        (
            'shots = { path = "it.jsonl" }',
            '{"subject": "a", "relation": "b", "objects": []}',
            "line 1: 'b' is no relation",
        ),
        ('relations = { area = { shots = { path = "it.jsonl" } } }', None, "shots 'it.jsonl' is no file"),
        ('context = { provider = "titles", path = "from" }', None, ""),
        ('context = { provider = "titles", path = "it.jsonl" }', '{"title": "a", "text": "b"}', ""),
    ],
    ids=range(9),
)
def test_a_check_opens_the_files_that_a_recipe_reads(
    command: Command, setting: str, content: str | None, told: str
) -> None:
    if content is not None:
        Path("it.jsonl").write_text(content)
    table = f'[[generate]]\ncomponent = "chat"\nmodel = "m"\n{setting}\n'
    Path("my.toml").write_text(f'description = "x"\n{table}[select]\nrule = "cutoff"\nthreshold = 0.5\n')
    if told:
        assert told in command.fails("systems", "check", "my.toml")
    else:
        command.done("systems", "check", "my.toml")
