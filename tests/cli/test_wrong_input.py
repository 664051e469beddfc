"""Wrong input: exit 2 and one sentence of one style, before any work, and no file is touched."""

import shlex
import shutil
from pathlib import Path

import pytest
from command import Command
from opened import recipe_file

from lmkbc.link.index_sources import build_index

BUILD = "build --subjects s.csv --edition mini --system prior --out o"
LINKED = '{"SubjectEntity": "Nile", "Relation": "RiverBasinsCountry", "ObjectEntities": ["Egypt"]}\n'
FILES = {
    "answers.jsonl": '{"SubjectEntity": "a"}',
    "other.jsonl": '{"SubjectEntity": "a", "Relation": "hasArea", "ObjectEntities": ["1"]}',
    "taken": "kept",
    "rows.jsonl": "mine",
    "rows.partial": "mine, and no unfinished index",
    "mine/thesis.tex": "years of work",
    "notes.txt": "mine",
    "kinds.toml": 'description = "x"\ngenerate = "x"\nselect = 1\n',
    "p.jsonl": LINKED,
    "odd.jsonl": f"{LINKED}\n{LINKED.replace('ObjectEntities', 'Objects')}",
    "t.csv": "text,id\nInn,Q1\n",
    "s.csv": "name\nChad\n",
    "s.json": '{"Egypt": "Q79"}',
}


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("index")
    (folder / "t.csv").write_text(FILES["t.csv"])
    build_index(folder / "i", tables=[folder / "t.csv"])
    return folder / "i"


@pytest.fixture
def _files(tmp_path: Path, index: Path) -> None:
    """The files that the words below name."""
    for name in ("folder", "empty", "mine"):
        (tmp_path / name).mkdir()
    for name, content in FILES.items():
        (tmp_path / name).write_text(content)
    (tmp_path / "link").symlink_to("empty")
    recipe_file(tmp_path / "rule.toml", {"component": "prior"}, select={"rule": "topk"})
    recipe_file(tmp_path / "majority.toml", {"component": "prior"}, select={"rule": "majority"})
    recipe_file(tmp_path / "three.toml", {"component": "chat", "model": "m"}, select={"rule": "quorum", "models": 3})
    for place in ("made", "base/facts"):
        (tmp_path / place).mkdir(parents=True)
    (tmp_path / "made" / "predictions.jsonl").write_text(LINKED)
    shutil.copy(index, tmp_path)


@pytest.mark.usefixtures("_files")
@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("frobnicate", "unknown command 'frobnicate': 'lmkbc --help' says which there are"),
        ("predcit", "unknown command 'predcit': did you mean 'predict'?"),
        ("relations lst", "no such command 'lst' (did you mean 'list'?); see"),
        ("predict --edtion mini", "no such option: --edtion (did you mean --edition?); see"),
        (
            "report run --empty none",
            "no such option: --empty, which is of commands that ask or read answers, such as predict; what they wrote "
            "keeps it; see 'lmkbc report --help'",
        ),
        ("predict val", "no option stands before val: write one, as in --split val; see"),
        ("--frobnicate", "no such option: --frobnicate"),
        ("report", "missing argument 'RUN'; see 'lmkbc report --help'"),
        ("probe kamel", "missing argument 'SOURCE'"),
        ("train mlm", "missing option '--backbone'"),
        ("predict --limit x", "invalid value for '--limit'"),
        ("predict 'a\x1b[31m'", ": write one, as in --split val; see"),
        ("tune -e mini --rules foo", "rule 'foo' cannot be tuned"),
        ("tune -e mini --system prior --relation foo", "edition mini asks for no relation 'foo'"),
        ("predict -e mini --system answers.jsonl", "answers.jsonl is no recipe: a recipe is a TOML file"),
        ("link absent.jsonl -e mini", "absent.jsonl does not exist"),
        ("link answers.jsonl -e mini", "answers.jsonl, line 1: Object missing required field `Relation`"),
        ("link --explain Rome -e mini -r foo", "unknown relation 'foo'"),
        ("evaluate other.jsonl -e mini", "other.jsonl is a file of edition 2025 or 2026, not of mini"),
        ("evaluate folder -e mini", "folder holds no predictions.jsonl: this is no run"),
        ("evaluate other.jsonl -e 2026 --rows", "--rows is shown as JSON: add --json"),
        ("compare other.jsonl", "compare needs two runs at least"),
        ("predict --edition 2032", "unknown edition '2032'"),
        ("predict --edition 2023", "run 'lmkbc data fetch 2023'"),
        ("predict -e mini --system embeded", "did you mean 'embedded'"),
        ("predict -e mini --system recorded", "name at least one file with --from"),
        ("predict -e mini --from absent.jsonl", "absent.jsonl does not exist"),
        ("predict -e mini --split trial", "has no split 'trial'"),
        ("predict --data absent", "absent is not a directory"),
        ("evaluate absent.jsonl --edition mini", "absent.jsonl does not exist"),
        ("evaluate answers.jsonl --edition mini --split test", "has no gold"),
        ("relations show spouze", "did you mean 'spouse'"),
        ("systems show nothing", "unknown system 'nothing'"),
        ("data fetch mini", "there is nothing to fetch"),
        ("predict --limit 0", "invalid value for '--limit'"),
        ("predict --edition mini --out taken/run", "is no directory: name another place"),
        ("submit rows.jsonl --edition mini --out folder", "folder is a directory: name a file to write"),
        ("link rows.jsonl --edition mini --offline --out folder", "folder is a directory"),
        ("link build folder --edition mini", "folder is a directory: name a file to write"),
        ("link --explain Rome --edition mini", "both --explain TEXT and --relation NAME"),
        ("probe kamel KAMEL --model x --out folder", "folder is a directory: name a file to write"),
        ("probe kamel absent --model x", "absent does not exist"),
        ("probe lama absent --model x", "absent does not exist"),
        ("probe optiprompt absent --model x --kept folder", "folder is a directory"),
        ("probe kmir build absent.tsv --out taken", "taken is a file"),
        ("data fetch 2023 --data taken", "taken is a file: name a directory"),
        ("predict --edition mini --system rule.toml", "rule.toml: select: unknown selection rule"),
        (
            "predict --edition mini --system kinds.toml",
            "kinds.toml: a recipe: setting 'generate' is 'x': give a list of tables",
        ),
        (
            "relations check --workspace folder",
            "folder is no workspace: it needs lmkbc.toml",
        ),
        ("predict -e mini --max-cost inf", "--max-cost is inf: give a finite number, not below 0"),
        ("predict -e mini --precision 0", "--precision is 0: give a share between 0 and 1, as in 0.9, or best:0.1"),
        ("predict -e mini --precision 1", "--precision is 1: give a share between 0 and 1, as in 0.9, or best:0.1"),
        ("predict -e mini --precision nan", "--precision is nan: give a share between 0 and 1, as in 0.9, or best:0.1"),
        ("tune -e mini --prices 1,inf", "--prices is '1,inf': give two numbers"),
        ("tune -e mini --prices 1", "--prices is '1': give two numbers"),
        ("predict -e mini --prices 1,1 --max-cost nan", "invalid value for '--max-cost'"),
        ("predict -e mini --prices 1,1 --max-cost -1", "invalid value for '--max-cost'"),
        ("predict -e mini --max-cost 1 --prices=nan,nan", "--prices is 'nan,nan': give two numbers"),
        ("predict -e mini --max-cost 1 --prices=-1,-1", "--prices is '-1,-1': give two numbers"),
        ("predict -e mini --max-cost 1 --prices=inf,1", "--prices is 'inf,1': give two numbers"),
        ("predict -e mini --max-cost 1 --prices=1,-inf", "--prices is '1,-inf': give two numbers"),
        ("predict -e mini --max-cost 1 --prices=1,2,3", "--prices is '1,2,3': give two numbers"),
        ("predict -e mini --max-cost 1 --prices=a,b", "--prices is 'a,b': give two numbers"),
        ("predict -e mini --max-cost 1 --prices=", "--prices is '': give two numbers"),
        (
            "submit rows.jsonl --edition mini --split val --out rows.jsonl",
            "is what is read: name another file to write",
        ),
        ("link rows.jsonl --edition mini --offline --out rows.jsonl", "is what is read: name another file to write"),
        ("link build rows.jsonl --table rows.jsonl", "is what is read: name another file to write"),
        ("link build rows.jsonl --edition mini", "rows.jsonl exists and is no index"),
        ("link build rows --edition mini", "rows.partial is no unfinished index"),
        ("store export --store rows.jsonl --out rows.jsonl", "is what is read: name another file to write"),
        ("probe kamel rows.jsonl --model x --out rows.jsonl", "is what is read: name another file to write"),
        ("probe optiprompt rows.jsonl --model x --kept rows.jsonl", "is what is read: name another file to write"),
        ("probe kmir run rows.jsonl --model x --out .", "is what is read: name another file to write"),
        (
            "probe kmir build rows.jsonl --out mine",
            "mine holds files that are not of KMIR's questions, first 'thesis.tex'",
        ),
        ("train mlm --backbone x --out mine --edition mini", "mine holds files that are not of a trained model"),
        ("train lora --model x --out mine --edition mini", "mine holds files that are not of a trained model"),
        ("predict --split val --edition mini --system bl22-empty --out .", "'.' is no name of a directory to write"),
        ("predict --split val --edition mini --system bl22-empty --out ''", "'.' is no name of a directory to write"),
        ("predict --split val --edition mini --system bl22-empty --out /", "'/' is no name of a directory to write"),
        (
            "predict --split val --edition mini --system bl22-empty --out mine",
            "mine holds files that are not of a run, first 'thesis.tex'",
        ),
        (
            "predict --split val --edition mini --system bl22-empty --out notes.txt",
            "notes.txt is a file: name a directory",
        ),
        (
            "predict --split val --edition mini --system bl22-empty --out link",
            "link is a link: name a directory itself",
        ),
        (
            "predict --split val --edition mini --system bl22-empty --out run/..",
            "'run/..' is no name of a directory to write",
        ),
        ("'--\u202edne'", "no such option: --\ufffddne; see 'lmkbc --help'"),
        ("predict '--\u202ex'", "no such option: --\ufffdx; see 'lmkbc predict --help'"),
        ("runs --diff made made --edition mini", "--edition is of the list of a folder's runs"),
        ("submit a 'b\u202ec'", "no option stands before b\ufffdc: write one"),
        ("predict -e '\u202e'", "unknown edition '\\u202e'"),
        ("ask Peru borders-of --edition mini", "edition mini asks for no relation 'borders-of'"),
        ("ask Peru borders-of", "unknown relation 'borders-of'"),
        ("ask ' ' country-borders", "the subject has no name"),
        (
            "ask Peru country-borders -e mini --system prior --subject-id Peru",
            "--subject-id is 'Peru', which is no QID",
        ),
        ("ask Peru country-borders -e mini --system prior --subject-id Q0", "--subject-id is 'Q0', which is no QID"),
        ("ask Peru country-borders -e mini --system prior --subject-id ''", "--subject-id is '', which is no QID"),
        (
            "link p.jsonl --edition mini --search-table s.json --out ./p.jsonl",
            "is what is read: name another file to write",
        ),
        (
            "link p.jsonl --edition mini --search-table s.json --out s.json",
            "is what is read: name another file to write",
        ),
        ("link labels 'Q1|Q2' --index i", "is no QID"),
        ("link labels ../../x --index i", "is no QID"),
        ("link labels Q0 --index i", "is no QID"),
        ("link labels Q99999999999999999999 --index i", "is no QID"),
        ("link odd.jsonl -e mini --search-table s.json", "odd.jsonl, line 3, field ObjectEntities: absent"),
        ("runs nowhere", "is no folder"),
        ("store stats --store none", "there is no store"),
        ("systems fetch prior", "no [source] says where the authors' words are"),
        (f"{BUILD} --engine spark", "--engine is 'spark'"),
        (f"{BUILD} --address host:6379", "give --engine ray too"),
        (f"{BUILD} --workers 2", "give --engine ray too"),
        (f"{BUILD} --gpus 1", "give --engine ray too"),
        ("runs folder", "holds no run"),
        ("runs made", "made holds no run: it is a run itself, so name the folder that it lies in"),
        ("export made --format csv --out x", "made is a run, not a knowledge base: 'lmkbc report made' shows it"),
        ("audit made", "made is a run, not a knowledge base"),
        ("export s.csv --format csv --out x", "s.csv is no directory: give one of 'lmkbc build'"),
        ("evaluate base", "it is a knowledge base; 'lmkbc report base' shows it"),
        ("link folder", "folder holds no predictions.jsonl: this is no run; give a finished run"),
        ("predict -s val -e mini --from p.jsonl --out o", "predictions are no answers of a model"),
        ("predict -s val -e mini --system majority --out o", "unknown system 'majority': 'lmkbc systems list' says"),
        ("systems check prior --any-model", "are of a server: give --base-url too"),
        (
            "predict -s val -e mini --system three.toml --base-url http://127.0.0.1:9/v1",
            "rule quorum keeps what 3 models name, and three asks 1 model, so it would keep nothing",
        ),
        ("systems check absent.toml", "absent.toml does not exist: check the path"),
        ("systems check majority.toml", "unknown selection rule 'majority': did you mean 'cutoff'? Its threshold is a"),
        ("tune -e mini --system prior --rules majority --no-write", "cannot be tuned: 'lmkbc rules list' says"),
        ("relations show majority", "unknown relation 'majority': 'lmkbc relations list' says"),
        ("link p.jsonl --edition mini", "set LMKBC_CONTACT, or --contact where a command has it, to your name"),
        ("runs . --edition 2031", "unknown edition"),
    ],
)
def test_what_is_wrong_is_one_sentence_and_nothing_is_done(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, told: str
) -> None:
    monkeypatch.setattr("lmkbc.run.pipeline.Steps.over", lambda *_: pytest.fail("something was generated"))
    before = {path: path.is_file() and path.read_bytes() for path in tmp_path.rglob("*")}
    error = command.fails(*shlex.split(words))
    style = error.startswith("error: "), error.count("\n"), error[:-1].isprintable()
    assert (told in error, *style) == (True, True, 1, True), error
    assert {path: path.is_file() and path.read_bytes() for path in tmp_path.rglob("*")} == before
