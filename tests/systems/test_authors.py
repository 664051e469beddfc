"""Authors' words come over the line, are held against their SHA-256, and are frames then; nothing of theirs is here."""

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command import Command
from loopback import Files
from space import SPACE

from lmkbc import InputError
from lmkbc.files.places import fetched_frames
from lmkbc.masked.preconditions import rewritten
from lmkbc.recipe import RecipeFile, make_recipe, read_file, read_recipe
from lmkbc.settings import checked
from lmkbc.systems.authors import converted
from lmkbc.testing import Notes, Query, Run

FETCHED = {name: fetched_frames(name) for name in SPACE.system_names()}
"""Words on this machine, by system: read before a test has a cache of its own."""
PROMPTS = {
    "bl22": ("2022", "ebe34d42a40c1fb69374436f570982899d50bbe5a3c6a20a9e69ec9d363c234f"),
    "bl24": ("2024", "44af1cbc7a45f006d70354d315595b6ee94b0f5befe9d89b7f2d492fe3278016"),
    "bl24-completion": ("2024", "ea31bc422193a4c507ef0daf76be78d5d7e9a3d951b3b25d475e41cccefcf4e9"),
    "bl24-mlm": ("2024", "d1b87e0c3563058222f2742e42dfb596755d0cb08054995ea07e93942c45013d"),
    "bl25": ("2025", "ae8223d5b83b045e47088820ef6fa5cb49427d33043d211ab5bd0243cc1d2c0b"),
    "bl26": ("2026", "9b35bcba7a62313702b38eef7d640031e7a2b945ccb3769ffc98416b87ad641f"),
    "chironk26": ("2026", "6f860e08b8b2991ce79ef718605988bb817401301b9553899109626e4fd511b5"),
    "li22": ("2022", "e4f9dd8908622872a852e9d661847b12aa5b62d7b4d30dfeb8250fb2fc659d96"),
    "li22-paper": ("2022", "48b7676b079f08c4cb8a990b0fe8b4d4f17a45d17a8e77913d3940bee22088fa"),
    "llmke23": ("2023", "2c2f75e5c2adc693f866c4bd354717417200521a86e218c9f996840580c12ab1"),
    "llmke23-best": ("2023", "ed5ebe007d9c12a383bbf66b3884cecf1245f983d00892c9ec30b5f40687c894"),
    "llmke23-context": ("2023", "c144fc0c1bf3d1851f913809da11f077f14ef332237150bc2a11a46fd854796a"),
    "llmke23-triple": ("2023", "0f1592bba8fa1d8def8e1dd380241ad3fa609d86728f9db9e86efee0f9a8a360"),
    "mave26": ("2026", "d8d9df9f10462194b7df97de1dc1c6b87be4debe0b9f259c3220953c3e661f87"),
    "minimal23": ("2023", "89673d1930c3797107fd7e42241b3cae101baa5385764806aa7aa0ddbaabde4a"),
    "ning22": ("2022", "72b7e032753b4475200ee66ebce68d4abcfad0c0aaf5b059253adf548b3beace"),
    "prop22": ("2022", "61618c81c6a02512d0e5a459554658c988bcfc74e59139896e1e34cea43fb418"),
    "thyl26": ("2026", "4ae14b0e3642d9ec08ec94ec48c20ec73fce8d74979b63adb4a1f60be9fbfa7f"),
}
"""By system: its edition, and the SHA-256 of the prompts of three subjects in each relation, in its authors' words."""

FILES = {
    "/questions.json": b'{"hasArea": "How big is {subject_entity}?"}',
    "/questions.csv": b'Relation,PromptTemplate\r\nhasArea,"Say, how big is {subject_entity}?"\r\n',
    "/prompt.txt": b"Crete hasArea: ['8336']\n\nMilos hasArea: ['151']\n\n{subject_entity} hasArea:",
    "/list.json": b"[1, 2]",
    "/bare.json": b'{"hasArea": "How big?"}',
    "/slots.json": b'{"hasArea": "How big is {subject_entity} in {town}?"}',
    "/strange.json": b'{"hasSize": "How big is {subject_entity}?"}',
    "/empty.json": b"{}",
    "/ask.yaml": b"""
system: You know {places}.
user: How large is {subject}? It is said, {context}
recall_system: |-
  Tell it
  at length.
recall_user: What is {subject}?
number: 3
""",
    "/ask.py": b"""
def ask(who, relation, gap):
    if relation == "hasArea":
        text = f"{who} is as large as {gap}."
        more = "How large? {} is {}.".format(who, gap)
""",
}
RECIPE = """description = "x"
wording = "authors"
[[generate]]
component = "chat"
model = "m"
prompt = {{ form = "completion", block = "{{{{ subject }}}}?", listing = "python" }}
[select]
rule = "cutoff"
threshold = 0.5
[source]
licence = "MIT"
credit = "Somebody, 2031"
[[source.files]]
path = "{url}"
"""


@pytest.fixture
def served() -> Iterator[str]:
    with Files(FILES) as server:
        yield server.url


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def recipe(folder: Path, url: str, kind: str = "templates", sha256: str | None = None) -> str:
    path = folder / "mine.toml"
    digest = hashlib.sha256(FILES[url[url.rindex("/") :]]).hexdigest() if sha256 is None else sha256
    about = 'relation = "hasArea"\n' if kind == "prompt" else ""
    path.write_text(RECIPE.format(url=url) + f'format = "{kind}"\nsha256 = "{digest}"\n' + about)
    return str(path)


@pytest.fixture
def fetch(command: Command) -> Command:
    return command.under("systems", "fetch")


def asked(name: str) -> str:
    (spec,) = read_recipe(SPACE, name).generate
    asking = replace(spec, only=("area",)).asking(Run(workspace=SPACE, edition=SPACE.edition("2026")), [])
    return asking.prompt(Query("Rhodes", "hasArea")).text


def texts(spec: Any, query: Query, run: Run) -> list[str]:
    if hasattr(spec, "probe"):
        relation = run.relations[query.relation]
        first = [
            cloze
            for asked in spec.preconditions(relation)
            for cloze in (asked.cloze, *(one for answer in asked.answers for one in rewritten(asked, "", {answer: 1})))
        ]
        return [cloze.format(subject=query.subject, mask="[MASK]") for cloze in (*first, *spec.templates(relation))]
    if not spec.frames or (spec.only and run.relations[query.relation].name not in spec.only):
        return []
    if any("shots" in frame for frame in spec.framing.tables.values()):
        spec = replace(spec, shots=replace(spec.shots, k=0))
    asking = spec.asking(run, [])
    steps = asking.plan(query).style.steps
    slots = {step.name: "so" for step in steps} if steps else None
    before = [asking.step(query, step, {}).text for step in steps if step.task]
    whole = asking.prompt(query, slots=slots).text
    style = asking.plan(query).style
    after = [
        asking.filled(one.template, query, context="It is told.") for one in style.turns if one.name == "follow-up"
    ]
    return [text for text in (*before, whole, *after) if text]


@pytest.mark.parametrize(
    ("file", "kind", "prompt"),
    [
        ("questions.json", "templates", "How big is Rhodes?"),
        ("questions.csv", "templates", "Say, how big is Rhodes?"),
        ("prompt.txt", "prompt", "Crete hasArea: ['8336']\n\nMilos hasArea: ['151']\n\nRhodes hasArea:"),
    ],
)
def test_words_become_frames(fetch: Command, served: str, tmp_path: Path, file: str, kind: str, prompt: str) -> None:
    name = recipe(tmp_path, f"{served}/{file}", kind)
    assert fetch(name)[0] == 0
    assert asked(name) == prompt
    credit = fetched_frames("mine").with_name("credit.txt").read_text()
    assert credit == f"Somebody, 2031\nMIT\n{served}/{file}\n"


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("list.json", "list.json is not as its format 'templates' has it"),
        ("bare.json", "'How big?' has no {subject_entity}"),
        ("slots.json", "hasArea: block reads {{ town }}"),
        ("strange.json", "names 'hasSize', which is no relation"),
        ("empty.json", "it holds none"),
        (
            "absent.json",
            "absent.json cannot be fetched (404 Not Found); it is gone from there, and nothing was changed",
        ),
        ("questions.csv", f"not {'0' * 64}; it was discarded, nothing was changed"),
    ],
)
def test_what_is_wrong_leaves_the_last_good_file(
    fetch: Command, served: str, tmp_path: Path, file: str, said: str
) -> None:
    assert fetch(recipe(tmp_path, f"{served}/questions.json"))[0] == 0
    good = fetched_frames("mine").read_bytes()
    absent = file in ("absent.json", "questions.csv")
    given = recipe(tmp_path, f"{served}/{file}", sha256="0" * 64 if absent else None)
    assert said in fetch.fails(given, status=1 if absent else 2)
    assert fetched_frames("mine").read_bytes() == good


def test_an_undeclared_file_is_taken_when_its_sha256_is_given(fetch: Command, served: str, tmp_path: Path) -> None:
    name = recipe(tmp_path, f"{served}/questions.json", sha256="")
    digest = hashlib.sha256(FILES["/questions.json"]).hexdigest()
    assert f"has SHA-256 {digest}, and none is known of it" in fetch.fails(name)
    assert not fetched_frames("mine").exists()
    assert fetch(name, "--sha256", digest)[0] == 0
    assert asked(name) == "How big is Rhodes?"


def test_slips_that_the_authors_mended_later_are_mended(fetch: Command, served: str, tmp_path: Path) -> None:
    name = recipe(tmp_path, f"{served}/prompt.txt", "prompt")
    path = Path(name)
    whole = path.read_text()
    path.write_text(whole + """mended = [["'8336'", "'8450'"], ["Milos", "Melos"]]\n""")
    assert fetch(name)[0] == 0
    assert asked(name) == "Crete hasArea: ['8450']\n\nMelos hasArea: ['151']\n\nRhodes hasArea:"
    path.write_text(whole + 'mended = [["Samos", "Sámos"]]\n')
    assert "it has no 'Samos' to mend" in fetch.fails(name)


@pytest.mark.parametrize("name", PROMPTS)
def test_prompts_in_the_authors_words_are_theirs_to_the_character(name: str) -> None:
    if not FETCHED[name].is_file():
        pytest.skip(f"the words of {name}'s authors are not here: run 'lmkbc systems fetch {name}'")
    about, digest = PROMPTS[name]
    assert hashlib.sha256("\0".join(prompts_of(name, about)).encode()).hexdigest() == digest


def prompts_of(name: str, about: str) -> list[str]:
    """Return the prompts about three subjects in each relation, without fetched examples, whose file has a SHA-256."""
    edition = SPACE.edition(about)
    recipe = make_recipe(name, read_file(SPACE.recipe_path(name)), SPACE.relations, str(FETCHED[name]))
    return [
        text
        for spec in recipe.generate
        for query in (Query(who, one) for one in edition.relations for who in ("Crete", "Milos", "Io"))
        for text in texts(spec, query, Run(workspace=SPACE, edition=edition))
    ]


MASKED = 'component = "masked"\nprobe = { clozes = 1 }'
PYTHON = """words = [{ name = "def ask", lines = [[2, 2], [3, 3]], setting = "clozes", relation = "hasArea" }]
slots = { who = "{subject}", gap = "{mask}" }
"""


def test_python_source_becomes_clozes_and_is_not_run(fetch: Command, served: str, tmp_path: Path) -> None:
    name = recipe(tmp_path, f"{served}/ask.py", "python")
    text = re.sub("(?m)^prompt = .*$", "", Path(name).read_text()).replace('component = "chat"', MASKED)
    Path(name).write_text(text + PYTHON)
    assert fetch(name)[0] == 0
    kept = {path.name: path.stat().st_mode & 0o111 for path in fetched_frames("mine").parent.iterdir()}
    assert kept == dict.fromkeys(("credit.txt", "frames.toml", "sha256.txt", "source-1"), 0)
    (spec,) = read_recipe(SPACE, name).generate
    run = Run(workspace=SPACE, edition=SPACE.edition("2026"))
    assert texts(spec, Query("Io", "hasArea"), run) == ["Io is as large as [MASK].", "How large? Io is [MASK]."]
    with pytest.raises(InputError, match="no cloze for relation 'awardWonBy' of edition 2026"):
        spec.open(run, Notes())


def source_of(file: dict[str, Any], **more: str) -> Any:
    """Where a recipe's words are, as its table `source` says it."""
    source = {"licence": "MIT", "credit": "x", "files": [file], **more}
    return checked(RecipeFile, {"description": "x", "generate": [{}], "select": {}, "source": source}, "x").source


def test_a_text_over_several_lines_keeps_its_white_space() -> None:
    code = b"""class A:
    def ask(self):
        self.text = (
            'One.\\n\\
        Two.'
        )
        self.more = 1
"""
    words = {"name": "self.text = (", "lines": [[0, 3]], "setting": "task", "relation": "hasArea"}
    source = source_of({"format": "python", "path": "https://a.org/ask.py", "words": [words]})
    made = converted(source, [code])
    assert made.frames == {"hasArea": {"task": "One.\n        Two."}}


def test_every_bundled_source_is_fetched_without_an_option() -> None:
    for name in SPACE.system_names():
        source = read_file(SPACE.recipe_path(name)).source
        assert not source or all(file.sha256 for file in source.files), name


PUBLISHED = Path(__file__).parent / "published"
"""Files of the form of the published ones, line by line, in words of our own."""
ROW = {"SubjectEntity": "Crete", "ObjectEntities": [["8336"]], "Question": "Q?", "think": "So.", "Answer": "8336"}


READ = {"sliced_user": "{lo} and {hi}", "yearly_user": "{yr}"} | dict.fromkeys(
    ("bio_user", "year_city_user", "ctx_read_user", "ctx_area_read_user"), "{context}"
)
"""Key of a YAML file -> slots in its text."""


def stand_in(file: Any, relations: Sequence[str]) -> bytes:
    """Return a file of a published one's form."""
    own = PUBLISHED / f"{file.path.rpartition('/')[2]}.txt"
    if own.is_file():
        return own.read_bytes()
    if file.format == "templates" and file.path.endswith("json"):
        return json.dumps({one: f"Say {{subject_entity}} of {one}?" for one in relations}).encode()
    if file.format == "templates":
        gap = ", {mask_token}" if "masked" in file.path else ""
        rows = "".join(f'{one},"Say {{subject_entity}}{gap}, or so?"\n' for one in relations)
        return f"Relation,PromptTemplate\n{rows}".encode()
    if file.format == "prompt":
        slips = " ".join(slip for slip, _ in file.mended)
        return f"Crete hasArea: ['8336'] {slips}\n\n{{subject_entity}} hasArea:".encode()
    if file.format == "examples":
        return "\n".join(json.dumps(ROW | {"Relation": one}) for one in relations).encode()
    assert file.format == "yaml"
    texts = {words.name: f"Of {{subject}} {READ.get(words.name, '')}, {words.name}" for words in file.words}
    return "".join(f"{name}: '{text}'\n" for name, text in texts.items()).encode()


SOURCES = [name for name in SPACE.system_names() if read_file(SPACE.recipe_path(name)).source]


def in_their_words(name: str, folder: Path, fetch: Command) -> dict[str, list[str]]:
    """Return relation -> prompts about a subject, after the words of a system are fetched from files of their form."""
    file = read_file(SPACE.recipe_path(name))
    assert file.source
    relations = SPACE.edition(str(file.year)).relations
    published = {f"/{place}": stand_in(one, relations) for place, one in enumerate(file.source.files)}
    text = SPACE.recipe_path(name).read_text(encoding="utf-8")
    with Files(published) as server:
        for place, one in enumerate(file.source.files):  # from here, with their own digests
            found = re.search(rf'path = "{re.escape(one.path)}"([^\[]*?)sha256 = "{one.sha256}"', text)
            assert found, one.path
            digest = hashlib.sha256(published[f"/{place}"]).hexdigest()
            here = f'path = "{server.url}/{place}"{found[1]}sha256 = "{digest}"'
            text = text[: found.start()] + here + text[found.end() :]
        mine = folder / f"{name}.toml"
        mine.write_text(text.replace('wording = "own"', 'wording = "authors"'), encoding="utf-8")
        fetch.done(mine)
    recipe = read_recipe(SPACE, str(mine))
    run = Run(workspace=SPACE, edition=SPACE.edition(str(file.year)))
    return {
        relation: [
            one
            for spec in recipe.generate
            if (hasattr(spec, "prompt") or hasattr(spec, "probe")) and run.relations[relation].is_in(spec.only)
            for one in texts(spec, Query("Crete", relation), run)
        ]
        for relation in relations
    }


@pytest.mark.whole(but=["bl24", "chironk26", "duke26", "li22", "llmke23-best", "mave26", "prop22", "sirenze25"])
@pytest.mark.parametrize("name", SOURCES)
def test_a_source_is_converted_from_files_of_its_form(name: str, tmp_path: Path, fetch: Command) -> None:
    asked = in_their_words(name, tmp_path, fetch)
    prompts = [one for several in asked.values() for one in several]
    assert len(prompts) >= len(asked) or name in ("jhh25", "prop22")
    assert not [one for one in prompts if re.search(r"\{\w+\}|\{\{", one)]


DIRECT = """\
Know. Answer of July. Exactly with JSON.

Defined: Area 1 2 3 (x2.5).

Schema: {"value": <number>, "unit": "km2"}

Examples:

Q: How large is Crete (all, for countries)?
A:"""


def test_words_that_code_puts_together_are_put_together_as_there(tmp_path: Path, fetch: Command) -> None:
    asked = in_their_words("duke26", tmp_path, fetch)
    assert asked["hasArea"][0] == DIRECT
    assert asked["hasArea"][1] == "Crete\nType: g\n| F | V |\n|---|---|\n| Area | "
    assert asked["personHasCityOfDeath"][1].endswith('2. Then JSON: {"city": "C"} or {"city": null}.')
    own = {spec.name: spec for spec in read_recipe(SPACE, str(tmp_path / "duke26.toml")).generate}
    gate, probes, counts = (vars(own[name]) for name in ("gate", "probes", "counts"))
    assert gate["ask"] == "In July, is {{ subject }} gone? One word: Yes or No.\nAnswer:"
    there, back = probes["asks"]["countryLandBordersCountry"]
    asked_about = "Defined: Countries 1 2 3 4 5 (e.g. F-S).\n\nDoes {} border {}? On land. Yes or No.\nAnswer:"
    assert there == asked_about.format("{{ subject }}", "{{ object }}")
    assert back == asked_about.format("{{ object }}", "{{ subject }}")
    assert [one.ask[:16] for one in counts["prompt"].further] == ['All who got "{{ ', 'Who got "{{ subj']


def test_a_question_is_cut_where_the_authors_reader_cuts_it(tmp_path: Path, fetch: Command) -> None:
    asked = in_their_words("sirenze25", tmp_path, fetch)
    (borders,), (area,) = asked["countryLandBordersCountry"], asked["hasArea"]
    assert borders.endswith("Who borders Crete? Fill this: \\Crete is in _")
    assert area.endswith("Say, in km, or so. \\n Here: Subject: Crete, Relation: hasArea, Object: ?")
    assert borders.startswith("You know. \n            - Rule 3.")


def test_the_questions_of_core_end_with_what_may_be_answered(tmp_path: Path, fetch: Command) -> None:
    asked = in_their_words("core26", tmp_path, fetch)
    tasks = {relation: one.partition("\n\n")[0] for relation, (one,) in asked.items()}
    assert tasks["countryLandBordersCountry"] == "You know. Only names. No more, or a number. Or None."
    first = "You know. First reason, then write 'Final Answer: ' and names. No more, or a number."
    assert tasks["awardWonBy"] == f"{first} Or 'Final Answer: None'."
    assert tasks["hasArea"] == f"{first} Always — guess. Never None."


def test_what_was_fetched_and_changed_is_refused(fetch: Command, served: str, tmp_path: Path) -> None:
    name = recipe(tmp_path, f"{served}/questions.json")
    assert fetch(name)[0] == 0
    fetched_frames("mine").write_text('[hasArea]\nblock = "{{ subject }}, I say?"\n')
    with pytest.raises(InputError, match=r"frames\.toml is not as it was fetched: run 'lmkbc systems fetch mine"):
        asked(name)
    assert fetch(name)[0] == 0
    assert asked(name) == "How big is Rhodes?"


def test_words_that_an_earlier_release_converted_are_converted_anew(
    fetch: Command, served: str, tmp_path: Path
) -> None:
    name = recipe(tmp_path, f"{served}/questions.json")
    assert fetch(name)[0] == 0
    frames = fetched_frames("mine")
    digest = hashlib.sha256(frames.read_bytes()).hexdigest()
    frames.write_text('[hasArea]\nblock = "How big is {subject}?"\n')
    record = frames.with_name("sha256.txt")
    record.write_text(record.read_text().replace(digest, hashlib.sha256(frames.read_bytes()).hexdigest()))
    with pytest.raises(
        InputError, match=r"so write \{\{ subject \}\}, or .*; 'lmkbc systems fetch mine.*' converts them anew"
    ):
        asked(name)
    assert fetch(name)[0] == 0
    assert asked(name) == "How big is Rhodes?"


BANK = [
    {"SubjectEntity": "Crete", "Relation": "hasArea", "ObjectEntities": [["8336"]], "Ask": "Crete?", "Why": " Known. "},
    {"SubjectEntity": "Milos", "Relation": "hasArea", "ObjectEntities": [], "Ask": "Milos?", "Why": "Small."},
]
SHOWN = """[[source.files]]
path = "{url}/bank.jsonl"
format = "examples"
sha256 = "{digest}"
slots = {{ question = "Ask", reasoning = "Why" }}
"""


def test_examples_are_fetched_with_their_own_words(fetch: Command, tmp_path: Path) -> None:
    bank = "\n".join(map(json.dumps, BANK)).encode()
    shown = 'block = "{{ question }}", answer = " {{ reasoning }} {{ answer }}", ask = "{{ asked }}"'
    files = FILES | {"/bank.jsonl": bank}
    with Files(files) as server:
        name = Path(recipe(tmp_path, f"{server.url}/questions.json"))
        about = SHOWN.format(url=server.url, digest=hashlib.sha256(bank).hexdigest())
        name.write_text(name.read_text().replace('block = "{{ subject }}?"', shown) + about)
        assert fetch(str(name))[0] == 0
        assert asked(str(name)) == "How big is Crete? Known. ['8336']\nHow big is Milos? Small. []\nHow big is Rhodes?"
        good = fetched_frames("mine").read_bytes()
        for wrong, said in (
            (b'{"SubjectEntity": "Crete", "Relation": "hasArea", "ObjectEntities": []}', "line 1 has no 'Ask'"),
            (bank + b"\n{", "line 3 is no JSON"),
            (b"[]", "line 1 has no 'SubjectEntity'"),
        ):
            files["/wrong.jsonl"] = wrong
            given = about.replace("bank", "wrong")
            given = re.sub("[0-9a-f]{64}", hashlib.sha256(wrong).hexdigest(), given)
            name.write_text(Path(recipe(tmp_path, f"{server.url}/questions.json")).read_text() + given)
            assert f"wrong.jsonl is not as its format 'examples' has it: {said}" in fetch.fails(str(name))
            assert fetched_frames("mine").read_bytes() == good


STEPS = """frames = ""
[[generate.each]]
name = "told"
prompt = { steps = [{ name = "account", ask = "Who is {{ subject }}?" }], ask = "{{ account }}, and?" }
[[generate.each]]
name = "asked"
"""
KEYS = """words = [
  { name = "system", setting = "task", relation = "hasArea", parts = ["told"] },
  { name = "user", setting = "ask", relation = "hasArea", parts = ["told"] },
  { name = "recall_system", setting = "task", relation = "hasArea", parts = ["told/account"] },
  { name = "recall_user", setting = "ask", relation = "hasArea", parts = ["told/account"] },
]
slots = { "{context}" = "{account}", "{places}" = "isles" }
"""


def yaml_recipe(folder: Path, url: str, keys: str = KEYS) -> str:
    path = Path(recipe(folder, f"{url}/ask.yaml", "yaml"))
    text = re.sub("(?m)^prompt = .*$", "", path.read_text()).replace("[select]", f"{STEPS}\n[select]")
    path.write_text(text + keys)
    return str(path)


def test_keys_of_yaml_become_the_words_of_a_part_and_of_its_steps(fetch: Command, served: str, tmp_path: Path) -> None:
    name = yaml_recipe(tmp_path, served)
    assert fetch(name)[0] == 0
    told, other = read_recipe(SPACE, name).generate
    run, query = Run(workspace=SPACE, edition=SPACE.edition("2026")), Query("Io", "hasArea")
    asking = replace(told, only=("area",)).asking(run, [])
    (step,) = asking.plan(query).style.steps
    assert asking.step(query, step, {}).text == "Tell it\nat length.\n\nWhat is Io?"
    whole = asking.prompt(query, slots={"account": "a moon"}).text
    assert whole == "You know isles.\n\nHow large is Io? It is said, a moon"
    assert not other.frames  # the file says nothing of that part


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('name = "user"', 'name = "nobody"', "it has no text 'nobody'"),
        ('name = "user"', 'name = "number"', "it has no text 'number'"),
        ('"{places}" = "isles"', '"{x}" = ""', "hasArea: task reads {{ places }}"),
        ('relation = "hasArea", parts = ["told"] }', 'parts = ["told"] }', "needs source.files[0].words[0].relation"),
    ],
)
def test_yaml_that_is_another_changes_nothing(
    fetch: Command, served: str, tmp_path: Path, old: str, new: str, said: str
) -> None:
    assert fetch(yaml_recipe(tmp_path, served))[0] == 0
    good = fetched_frames("mine").read_bytes()
    assert said in fetch.fails(yaml_recipe(tmp_path, served, KEYS.replace(old, new)))
    assert fetched_frames("mine").read_bytes() == good


@pytest.mark.parametrize(
    "wrong",
    [
        {"path": "../../other/repo/main/x.json"},
        {"path": "a/../../x.json"},
        {"path": "/x.json"},
        {"path": "a//x.json"},
        {"path": "./x.json"},
        {"path": "%2e%2e/%2e%2e/x.json"},
        {"path": "a%2F..%2Fx.json"},
        {"path": "%252e%252e/x.json"},
        {"path": "..\\x.json"},
        {"repository": "../.."},
        {"repository": "owner/.."},
        {"repository": "owner/name/more"},
        {"repository": "evil.org@owner/name"},
        {"commit": "main"},
        {"commit": "../../x"},
        {"path": "http://example.org/x.json"},
        {"path": "http://127.0.0.1:80@example.org/x.json"},
        {"path": "http://127.0.0.1.example.org/x.json"},
        {"path": "ftp://example.org/x.json"},
        {"path": "//example.org/x.json"},
        {"path": "https:///x.json"},
    ],
    ids=lambda wrong: " ".join(wrong.values()),
)
def test_a_source_stays_in_its_repository_and_is_encrypted(
    fetch: Command, tmp_path: Path, served: str, wrong: dict[str, str]
) -> None:
    about = {"path": "a/x y#1.json", "repository": "owner/name", "commit": "0" * 40, **wrong}
    named = f"path = '{about['path']}'"
    path = tmp_path / "mine.toml"
    recipe(tmp_path, f"{served}/questions.json")
    whole = re.sub(r'path = ".*"', lambda _: named, path.read_text())
    more = f'[source]\nrepository = "{about["repository"]}"\ncommit = "{about["commit"]}"'
    path.write_text(whole.replace("[source]", more))
    said = fetch.fails(path)
    assert re.search(r"give (the file's place|owner/name|its 40 hex|an address that begins with https://)", said), said


def test_a_path_of_a_source_may_hold_any_sign_of_a_name() -> None:
    file = {"format": "templates", "path": "my data/v1..2/prompts#1 (é).json", "sha256": "0" * 64}
    source = source_of(file, repository="o/n.x", commit="a" * 40)
    assert source.address(source.files[0]) == (
        f"https://raw.githubusercontent.com/o/n.x/{'a' * 40}/my%20data/v1..2/prompts%231%20%28%C3%A9%29.json"
    )
