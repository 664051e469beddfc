import gzip
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command import Command
from loopback import Loopback, prompt_of
from opened import begins_here, generators, part, recipe_of
from space import SPACE, bundled

from lmkbc import Workspace
from lmkbc.generate.reply import candidates
from lmkbc.plan import Plan
from lmkbc.recipe import read_file
from lmkbc.run.pipeline import propose
from lmkbc.testing import Query, Reply, Run, State
from tests.link.stand_in import StandIn, item

ROOT = Path(__file__).resolve().parents[2]
CANARY = "sk-canary-7f3a91c2"
CHAT = [name for name in SPACE.system_names() if bundled(name).generate[0].component.split("/")[-1] == "chat"]
PUBLISHED = (
    "prop22 bl23-gpt-ned bl23-gpt-ids llmke23 llmke23-context llmke23-best minimal23 lix23 biester23 bl24 bl25 bl26 "
    "cs2-26 thyl26 mave26 chironk26"
).split()


def context(url: str, tmp_path: Path, edition: str = "mini", **given: Any) -> Run:
    options = {"base_url": url, "store": tmp_path / "store.sqlite", **given.pop("options", {})}
    return Run(workspace=SPACE, edition=SPACE.edition(edition), servers=options, **given)


def bare(generator: Any) -> Any:
    """Return the generator within others that asks a model, or reads a file."""
    while hasattr(generator, "_generator"):
        generator = generator._generator
    return generator


def test_the_published_systems_are_here() -> None:
    assert set(PUBLISHED) <= set(CHAT)


@pytest.mark.parametrize("name", [name for name in CHAT if not begins_here(bundled(name))])
def test_recipes_are_short_cited_and_scored(name: str) -> None:
    system = bundled(name)
    own, _, _ = (ROOT / "lmkbc" / "systems" / name / "recipe.toml").read_text(encoding="utf-8").partition("[source]")
    assert len(own.splitlines()) < 150
    assert read_file(SPACE.recipe_path(name)).citation
    assert system.published
    assert all(0 < score < 1 and place.split("/")[0] in SPACE.editions for place, score in system.published.items())


@pytest.mark.parametrize("name", CHAT)
def test_recipes_ask_and_are_answered(name: str, tmp_path: Path) -> None:
    system = bundled(name)
    asked = [Query(f"subject {place}", relation) for place, relation in enumerate(SPACE.edition("mini").relations)]
    with Loopback(lambda _: '["7"]') as server:
        texts = tmp_path / "texts.jsonl"
        texts.write_text('{"title": "subject 0", "text": "It borders Spain."}\n')
        built = list(generators(context(server.url, tmp_path, files=(texts,)), system))
        assert len({name for name, _ in built}) == len({bare(one)._name for _, one in built}) == len(built)
        for _, generator in built:
            found = list(generator.generate(asked))
            assert {one.query for one in found} == set(asked)
            assert all(State.MISSING not in one.draws for one in found)
    assert server.requests
    assert not any("{" in prompt_of(body).split("subject ")[0].split("\n")[0] for body in server.requests)


def test_examples_of_prompts(tmp_path: Path) -> None:
    def asked(name: str, relation: str = "CountryBordersCountry") -> dict[str, Any]:
        with Loopback() as server:
            ((_, generator), *_rest) = generators(context(server.url, tmp_path), bundled(name))
            list(generator.generate([Query("Utopia", relation)]))
        return server.requests[0]

    assert asked("minimal23")["messages"] == [
        {
            "role": "user",
            "content": f'{bundled("minimal23").generate[0].prompt.task}\n\n("Utopia", "borders", [])',
        }
    ]
    question = SPACE.relation("country-borders").question
    assert asked("prop22")["prompt"].endswith(f"\n\n{question.format(subject='Utopia')}\n")
    assert asked("prop22", "PersonPlaysInstrument")["prompt"].endswith("\n\nUtopia PersonPlaysInstrument:")
    assert "['None']" in asked("prop22", "CompanyHasParentOrganisation")["prompt"]
    assert asked("lix23")["messages"][0]["role"] == "assistant"
    turns = [turn["content"] for turn in asked("llmke23")["messages"]]
    assert len(turns) == 12
    assert turns[-1].startswith(f"{question.format(subject='Utopia')} Write the answer as a Python list")
    assert turns[1].endswith("?")  # the form of the answer is asked for once
    assert asked("llmke23-triple")["messages"][-1]["content"].startswith("Utopia, CountryBordersCountry: Write")
    for relation in ("CountryBordersCountry", "PersonPlaysInstrument"):
        prompt = asked("bl23-gpt-ids", relation)["prompt"]
        assert prompt.startswith('State of Palestine, country-borders-country, ["Q801"]\n    Paraguay, ')
        assert prompt.endswith(f"\n    Utopia, {relation}, ")
    assert asked("bl23-gpt-ned")["prompt"].count("\n    ") == 4
    assert ", country-borders-country, " in asked("bl23-gpt-ned", "PersonPlaysInstrument")["prompt"]


@pytest.mark.parametrize("name", ["llmke23-context", "llmke23-best"])
def test_a_second_turn_asks_in_the_frame_s_words_after_texts_of_the_relation_s_title(
    name: str, tmp_path: Path, data_dir: Path
) -> None:
    texts = tmp_path / "texts.jsonl"
    rows = {"Mali": "no", "Administrative divisions of Mali": "Ten regions."}
    texts.write_text("".join(json.dumps({"title": title, "text": text}) + "\n" for title, text in rows.items()))
    asked = [Query("Mali", "CountryHasStates"), Query("Utopia", "CountryBordersCountry")]
    with Loopback(lambda _: '["7"]') as server:
        run = replace(context(server.url, tmp_path, "2023", files=(texts,)), workspace=Workspace(data=data_dir))
        for _, generator in generators(run, bundled(name)):
            list(generator.generate(asked))
    first, second, other = (
        body["messages"] for body in sorted(server.requests, key=lambda body: "Utopia" in repr(body))
    )
    assert second[: len(first)] == first
    assert second[len(first)]["content"] == '["7"]'
    assert "Ten regions." in (turn := second[-1]["content"])
    assert turn.endswith(first[-1]["content"])  # hints and form of the answer too
    assert "Utopia" in other[-1]["content"]


def test_the_command_line_comes_before_the_recipe(tmp_path: Path) -> None:
    with Loopback(delay=0.02) as server:
        run = context(server.url, tmp_path, model="other", options={"concurrency": 2, "max_tokens": 100_000})
        ((_, generator),) = generators(run, bundled("bl24"))
        list(generator.generate([Query(f"s{place}", "CountryBordersCountry") for place in range(8)]))
    assert {body["model"] for body in server.requests} == {"other"}
    assert server.most_at_once == 2


def test_facts_are_checked_but_for_relations_that_the_recipe_leaves_out(tmp_path: Path) -> None:
    def answer(body: dict[str, Any]) -> str:
        last = prompt_of(body).rstrip().split("\n")[-1]
        return ("False" if "oboe" in last else "True") if "Ada plays the" in last else " ['oboe', 'piano']"

    plays, died = Query("Ada", "PersonPlaysInstrument"), Query("Ada", "PersonHasPlaceOfDeath")
    with Loopback(answer) as server:
        ((_, generator),) = generators(context(server.url, tmp_path), bundled("prop22"))
        truths = {
            (one.query.relation, c.text): c.verification
            for one in generator.generate([plays, died])
            for c in one.candidates
        }
    assert truths == {
        (plays.relation, "oboe"): 0.0,
        (plays.relation, "piano"): 1.0,
        (died.relation, "oboe"): None,
        (died.relation, "piano"): None,
    }
    assert len(server.requests) == 4
    shown = [text.split("\n\n") for text in map(prompt_of, server.requests) if text.endswith("Ada plays the oboe.\n")]
    assert [[fact.split("\n")[-1] for fact in facts] for facts in shown] == [["True", "False", ""]]


@pytest.mark.whole(but=["yes-No Land Yes.-kept1"])
@pytest.mark.parametrize(
    ("existence", "verdict", "kept"),
    [
        ("yes", "No Land No", ["Arcadia"]),
        ("yes", "No Land Yes.", ["Arcadia", "Cockaigne", "Erewhon"]),
        ("no", "Yes Land Yes", []),
    ],
)
def test_mave26_keeps_what_two_sources_name_or_its_jury_admits(
    existence: str, verdict: str, kept: list[str], tmp_path: Path
) -> None:
    def answer(body: dict[str, Any]) -> str:
        text = prompt_of(body)
        for kind, said in zip(("step from", "Of what kind", "Go through"), verdict.split(), strict=True):
            if text.startswith(kind) or f" {kind}" in text:
                return said
        if "Begin with yes" in text:
            return existence
        return '["Arcadia", "Erewhon"]' if "Count them" in text else '["Arcadia", "Cockaigne"]'

    recipe, query = bundled("mave26"), Query("Utopia", "CountryBordersCountry")
    with Loopback(answer) as server:
        made = recipe.select.select_all(propose(Plan.of(context(server.url, tmp_path), recipe), [query]).sets)
    assert sorted(one.text for one in made[0].objects) == kept


def test_thyl26_reads_the_number_behind_what_is_recalled(tmp_path: Path) -> None:
    (spec,) = bundled("thyl26").generate
    relation = SPACE.relation("area")
    style, _ = spec.framed(spec.about("area")[0], spec.shots, relation)
    assert not style.block.endswith(("is", "of"))
    assert style.stops == ("\n##", "\n\n\n")
    for text, read in {
        " It lies 40 km off Crete. It covers an area of 1,240 square kilometres.": "1240",
        " It covers an area of 0.43 square kilometres and has 300 people.": "0.43",
        " Its area is 12 km2. It has 300 people.": "12",
    }.items():
        found = candidates(Query("Utopia", "hasArea"), relation, style, [Reply(text)], "m")
        assert [one.text for one in found.candidates] == [read]


def test_a_recipe_that_verifies_heeds_the_verdicts() -> None:
    systems = [bundled(name) for name in SPACE.system_names()]
    verifying = [one for one in systems if any(getattr(spec, "verify", None) for spec in one.generate)]
    assert verifying
    for one in verifying:
        rules = [one.select.general, *one.select.rules.values()]
        assert any(rule.reads_verification for rule in rules), one.name


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.name: path.read_bytes() for path in folder.iterdir() if path.name not in ("timing.json", "report.html")
    }


def test_the_command_end_to_end_and_no_trace_of_the_key(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "table.json").write_text("{}")
    with Loopback(lambda _: "None", faults=["500", "reset"]) as server:
        words = "predict --split val --edition mini --system bl24 --search-table table.json --out run".split()
        words += ["--base-url", server.url]
        asked = subprocess.run(
            [sys.executable, "-m", "lmkbc", *words, "--limit", "20"],
            check=False,
            capture_output=True,
            text=True,
            env={"PYTHONPATH": str(ROOT), "PATH": "", "XDG_CACHE_HOME": str(tmp_path), "OPENAI_API_KEY": CANARY},
        )
        assert asked.returncode == 0, asked.stderr
        first, served = contents(tmp_path / "run"), server.served
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        shown, told = command.done(*words, "--limit", "20", "--offline")
        assert CANARY not in shown + told
        assert contents(tmp_path / "run") == first
        rows = [json.loads(line) for line in gzip.decompress(first["replies.jsonl.gz"]).splitlines()]
        assert len(rows) == 20
        assert {*rows[0]} == {"SubjectEntity", "Relation", "SubjectEntityID", "model", "completions"}
        assert all(row["completions"] == ["None"] for row in rows)
        more = (*words, "--limit", "21", "--offline", "--out", "more")
        assert "1 of 21 queries failed, first" in command.fails(*more, status=1)
        assert server.served == served == 22
    assert any(CANARY in head for head in server.headers)
    assert CANARY not in asked.stdout + asked.stderr
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any(path.name == "store.sqlite" for path in files)
    assert not any(CANARY.encode() in path.read_bytes() for path in files)
    assert json.loads((tmp_path / "run" / "manifest.json").read_bytes())["counts"]["failed"] == 0


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["--base-url", "weights.gguf"], 2, "no http or https address"),
        (["--base-url", "http://example.org/v1"], 2, "OPENAI_API_KEY"),
        (["--max-cost", "1"], 2, "--prices"),
        (["--prices", "cheap"], 2, "two numbers"),
        (["--model", "absent"], 1, "has no model 'absent'"),
    ],
)
def test_what_is_wrong_is_one_sentence(command: Command, words: list[str], status: int, said: str) -> None:
    with Loopback() as server:
        common = ["predict", "--split", "val", "--edition", "mini", "--system", "bl24", "--limit", "2"]
        url = [] if "--base-url" in words else ["--base-url", server.url]
        ended, _, told = command(*common, *url, *words)
    assert (ended, said in told) == (status, True), told


def test_a_model_chooses_among_hits_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(body: dict[str, Any]) -> str:
        return "2" if "Reply with its number only" in prompt_of(body) else '["Ruritania", "Zenda"]'

    monkeypatch.setenv("LMKBC_CONTACT", "a test, test@example.org")
    items = {"Q1": item("Q1", "an inn", ["Q27686"]), "Q2": item("Q2", "a land", ["Q6256"])}
    world = {name: [*items] for name in ("Ruritania", "Zenda")}  # the search finds a hotel before a country
    link = part("link", strategies={"country-borders": ("model",)}, ask={"component": "chat", "model": "m"})
    recipe = replace(recipe_of({"component": "chat", "model": "m"}), link=link)
    asked = [Query(f"land {place}", "CountryBordersCountry") for place in range(3)]
    with StandIn(world, items) as wikidata, Loopback(answer) as server:
        for requests in (3 + 6, 0):
            before = server.served
            proposals = propose(Plan.of(context(server.url, tmp_path, api_url=wikidata.url), recipe), asked)
            assert server.served - before == requests
            assert [[(c.text, c.id) for c in one.candidates] for one in proposals.sets] == [
                [("Ruritania", "Q2")]  # both names mean Q2 now, and pool as one
            ] * 3
            assert proposals.usage["link"]["requests"] == (6 if requests else 0)
        offline = context("http://127.0.0.1:9/v1", tmp_path, offline=True)
        unheard = propose(Plan.of(offline, recipe), asked)
    assert all(one.failed for one in unheard.sets)  # another server's answers: nothing is asked, nothing made up


def test_limits_hold_for_all_that_ask_in_a_run(tmp_path: Path) -> None:
    each = [{"name": "a"}, {"name": "b", "prompt": {"task": "Say."}}]
    recipe = recipe_of(
        {"component": "chat", "model": "m", "shots": {"k": 0}, "sampling": {"max_tokens": 10}, "each": each}
    )
    asked = [Query(f"land {place}", "CountryBordersCountry") for place in range(10)]
    with Loopback() as server:
        space = context(server.url, tmp_path, options={"max_tokens": 1100})
        sources = [list(generator.generate(asked)) for _, generator in generators(space, recipe)]
    assert [sum(not one.failed for one in found) for found in sources] == [10, 0]  # of 110 tokens each
    assert server.served == 10
