"""How a long run says where it is, where there is no terminal: plain lines, timed by a clock of the test's own."""

from __future__ import annotations

import threading

import pytest

from lmkbc.progress import PERIOD, CountedStep, ExpectedStep, Lines, Overall, WholeStep, lasting, silent


class Clock:
    """A time that only the test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def lines(clock: Clock) -> Lines:
    return Lines(print, clock)


@pytest.fixture
def whole(clock: Clock) -> Overall:
    return Overall(clock)


@pytest.mark.parametrize(
    ("step", "named"),
    [
        ("tune (relations x folds)", ("tune", "tune", "relations x folds")),
        ("link", ("link", "link", "")),
        ("fold 1: fine-tuning, loss 0.123", ("fold 1: fine-tuning", "fold 1: fine-tuning, loss 0.123", "")),
        ("model (4 bit) (queries)", ("model (4 bit)", "model (4 bit)", "queries")),
        ("a\nb", ("a\nb", "a\nb", "")),
        ("", ("", "", "")),
    ],
)
def test_a_step_is_taken_apart(step: str, named: tuple[str, str, str]) -> None:
    assert CountedStep.of(step) == named


def test_a_line_tells_count_rate_and_time_left(clock: Clock, lines: Lines) -> None:
    assert lines.line() == ""
    lines.report("tune (relations x folds)", 0, 105)
    assert lines.line() == "tune: 0/105 relations x folds, 0 s so far"
    clock.now += 4
    lines.report("tune (relations x folds)", 12, 105)
    assert lines.line() == "tune: 12/105 relations x folds, 3.0/s, 31 s left"
    clock.now += 4  # nothing new was told, but the clock is not frozen
    assert lines.line() == "tune: 12/105 relations x folds, 1.5/s, 62 s left"
    lines.report("lines", 0, None)
    clock.now += 10
    lines.report("lines", 20_000, None)
    assert lines.line() == "lines: 20000, 2000.0/s, 10 s so far"
    clock.now += 1
    lines.report("boost (trees)", 0, 3)
    clock.now += 300
    lines.report("boost (trees)", 1, 3)
    assert lines.line() == "boost: 1/3 trees, 300.0 s each, 10 min left"
    lines.report("boost (trees)", 3, 3)
    assert lines.line() == "boost: 3/3 trees, 5 min so far"


def test_a_step_that_begins_again_or_goes_on_is_timed_from_where_it_began(clock: Clock, lines: Lines) -> None:
    lines.report("link (queries)", 0, 10)
    clock.now += 100
    lines.report("link (queries)", 10, 10)
    lines.report("link (queries)", 0, 10)
    clock.now += 2
    lines.report("link (queries)", 4, 10)
    assert lines.line() == "link: 4/10 queries, 2.0/s, 3 s left"
    lines.report("fine-tuning, loss 2.000", 50, 100)  # resumed: what is done already tells nothing of the rate
    clock.now += 5
    lines.report("fine-tuning, loss 1.000", 60, 100)
    assert lines.line() == "fine-tuning, loss 1.000: 60/100, 2.0/s, 20 s left"


def test_steps_that_take_turns_are_timed_from_the_first_block(clock: Clock, lines: Lines) -> None:
    for done in (0, 10, 20):
        for step, seconds in (("ask (queries)", 3), ("pool (queries)", 2)):
            lines.report(step, done, 100)
            clock.now += seconds
            lines.report(step, done + 10, 100)
    assert lines.line() == "pool: 30/100 queries, 2.5/s, 28 s left"


def test_one_line_every_ten_seconds_and_none_after_the_end() -> None:
    clock, told, waited = Clock(), list[str](), list[float]()
    done = threading.Event()

    def wait(seconds: float) -> bool:
        waited.append(seconds)
        clock.now += seconds
        if len(waited) == 4:
            done.set()
        return len(waited) == 4

    with (lines := Lines(told.append, clock, wait)) as entered:
        assert entered is lines
        assert done.wait(60)
    assert waited == [PERIOD] * 4 == [10.0] * 4
    assert told == []  # no step was reported

    waited.clear()
    done.clear()
    lines = Lines(told.append, clock, wait)
    lines.report("tune (relations x folds)", 0, 126)
    lines.report("tune (relations x folds)", 12, 126)
    with lines:
        assert done.wait(60)
    assert [line.split(",")[0] for line in told] == ["tune: 12/126 relations x folds"] * 3


def test_a_run_that_fails_or_ends_at_once_waits_for_nothing() -> None:
    told: list[str] = []
    with pytest.raises(KeyboardInterrupt), Lines(told.append):
        raise KeyboardInterrupt
    assert told == []
    assert not any(thread.name == "progress" for thread in threading.enumerate())


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(0.4, "0 s"), (30, "30 s"), (119, "119 s"), (120, "2 min"), (7199, "120 min"), (7200, "2.0 h")],
)
def test_durations(seconds: float, told: str) -> None:
    assert lasting(seconds) == told


def test_silence(capsys: pytest.CaptureFixture[str]) -> None:
    silent("tune", 1, 2)
    assert capsys.readouterr() == ("", "")


@pytest.fixture
def announced(whole: Overall) -> Overall:
    for name, seconds, total in (("read (rows)", 1.0, 10), ("ask (queries)", 2.0, 50), ("fit (trees)", 0.5, 40)):
        whole.report(ExpectedStep(name, seconds), 0, total)
    return whole


def test_the_time_of_a_whole_run_follows_from_what_its_steps_took_so_far(clock: Clock, announced: Overall) -> None:
    assert announced.left() == 10 + 100 + 20
    announced.report("read (rows)", 0, 10)
    for done in range(1, 6):
        clock.now += 4  # four times as slow as usual
        announced.report("read (rows)", done, 10)
    slower = ((20 + 1) / (5 + 1)) ** 0.5  # expected of later steps, and as one row in ten of this one
    left = 5 * (20 + slower) / (5 + 1) + slower * (100 + 20)
    assert announced.left() == pytest.approx(left)
    assert announced.share() == pytest.approx(20 / (20 + left))
    clock.now += 4  # no news: the clock goes on, and so does the share
    assert announced.left() == pytest.approx(left - 4)
    assert announced.share() == pytest.approx(24 / (20 + left))


def test_a_model_that_is_loaded_within_the_first_part_does_not_make_a_step_endless(
    clock: Clock, whole: Overall
) -> None:
    whole.report(ExpectedStep("ask (queries)", 0.03), 0, 1000)
    whole.report("ask (queries)", 0, 1000)
    clock.now += 3
    whole.report("ask (queries)", 1, 1000)
    assert whole.left() < 4 * 30  # and not 50 minutes


def test_a_step_that_was_stored_and_one_that_begins_again_are_counted(clock: Clock, announced: Overall) -> None:
    announced.report("ask (queries)", 0, 50)  # nothing was read
    clock.now += 100
    announced.report("ask (queries)", 50, 50)
    assert announced.left() == pytest.approx(20)
    for _ in range(2):  # two fits of 20 trees
        announced.report("fit (trees)", 0, 20)
        clock.now += 10
        announced.report("fit (trees)", 20, 20)
    assert announced.left() == 0
    assert announced.share() == 1


def test_what_ends_a_run_may_be_announced_first(clock: Clock, whole: Overall) -> None:
    whole.report(ExpectedStep("figures", 3.0, last=True), 0, 4)
    assert not whole.known  # a run whose other steps take no time has a bar for each step
    whole.report(ExpectedStep("ask (queries)", 1.0), 0, 10)
    whole.report("ask (queries)", 0, 10)
    clock.now += 10
    whole.report("ask (queries)", 10, 10)
    assert whole.left() == pytest.approx(12)


def test_a_run_of_many_blocks_is_not_taken_for_its_first(clock: Clock, lines: Lines) -> None:
    for block in range(2):
        lines.report("steps (queries)", 20 * block, 40)
        lines.report(ExpectedStep("ask (queries)", 1.0), 0, 20)
        lines.report("ask (queries)", 0, 20)
        clock.now += 20
        lines.report("ask (queries)", 20, 20)
        if not block:
            assert lines.line() == "100%, 0 s left (ask: 20/20 queries)"
        lines.report("steps (queries)", 20 * block + 20, 40)
    assert lines.line() == "steps: 40/40 queries, 40 s so far"


def test_a_build_shows_the_share_of_all_its_blocks(clock: Clock, lines: Lines) -> None:
    for block in range(4):
        lines.report(WholeStep("build (queries)"), 20 * block, 80)
        lines.report(ExpectedStep("ask (queries)", 1.0), 0, 20)
        clock.now += 20
        lines.report("ask (queries)", 20, 20)
        assert ("%" in lines.line()) == bool(block)  # nothing is known of the whole within the first
    assert lines.line() == "75%, 27 s left (ask: 20/20 queries)"
    lines.report(WholeStep("build (queries)"), 80, 80)
    assert not lines._whole.known  # what comes then is counted by itself


def test_a_run_without_announced_steps_tells_of_its_step() -> None:
    whole = Overall(Clock())
    whole.report("tune (folds)", 3, 5)
    assert not whole.known
    assert (whole.left(), whole.share()) == (0, 0)
