"""The checkout's workspace and the bundled edition, loaded once for all tests of a process."""

from functools import cache, partial

from lmkbc import Workspace
from lmkbc.recipe import read_recipe

SPACE = Workspace()
MINI = SPACE.edition("mini")
RELATIONS = {name: SPACE.relation(name) for name in MINI.relations}
TRAIN = SPACE.examples(MINI, "train")
bundled = cache(partial(read_recipe, SPACE))
"""Reads a bundled recipe by name."""
