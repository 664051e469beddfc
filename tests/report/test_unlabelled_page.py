"""The page of a run on a split without gold: what will be submitted, and nothing that looks like a score."""

from pathlib import Path

from command import Command


def test_a_test_run_has_a_page_of_what_is_submitted(command: Command) -> None:
    words = ("--edition", "mini", "--split", "test", "--out", "run")
    command.done("predict", *words, "--system", "prior")
    shown = command.done("report", "run")
    assert "report.html" in "".join(shown)
    page = Path("run/report.html").read_text(encoding="utf-8")
    assert "This split has no gold, so there is no score." in page
    assert "prior on LM-KBC mini, test" in page
    for part in ("What is submitted", "Counts of the run", "The surest answers", "Country<wbr>Borders", "<td class"):
        assert part in page
    assert "F1" not in page.partition("<main")[2]


def test_a_reply_on_the_page_is_no_markup(command: Command) -> None:
    Path("own.csv").write_text("subject,relation,text\nArmenia,country-borders,<script>Spain</script>\n")
    words = ("--edition", "mini", "--split", "test", "--failed-as-empty", "--out", "run")
    command.done("predict", *words, "--from", "own.csv")
    command.done("report", "run", "--out", "page.html")
    assert "<script>Spain" not in Path("page.html").read_text(encoding="utf-8")
