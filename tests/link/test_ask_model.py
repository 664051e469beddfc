import pytest

from lmkbc.link.ask_model import asker
from lmkbc.link.evidence import Hit
from lmkbc.types import Query

HITS = [Hit("Q1", "Inn", "hotel"), Hit("Q2", "Inn", "river"), Hit("Q3")]


@pytest.mark.parametrize(
    ("reply", "position"),
    [("2", 1), (" 2. Q2", 1), ("Number 3", 2), ("0", None), ("4", None), ("", None), ("the river", None)],
)
def test_a_reply_is_read_as_a_position(relations, reply: str, position: int | None) -> None:
    prompts: list[str] = []

    def complete(prompt: str) -> str:
        prompts.append(prompt)
        return reply

    assert asker(complete, relations)(Query("Passau", "rivers"), "Inn", HITS) == position
    assert "2. Q2: Inn (river)" in prompts[0]
    assert "3. Q3: Inn (no description)" in prompts[0]
    assert "Passau?" in prompts[0]
