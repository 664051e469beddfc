"""A call to a model that sets every field, as tests of stores keep answers to it."""

from lmkbc.models.base import Call

CALL = Call(
    model="m",
    revision="r1",
    base_url="http://a/v1",
    prompt=[{"role": "user", "content": "Who?"}],
    sampling={"temperature": 0.0, "top_p": 0.9, "max_tokens": 5, "stop": ["\n"], "extra": {"a": 1}},
    schema={"type": "object"},
    seed=3,
    draw=0,
)
