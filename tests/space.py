"""The checkout's workspace and the bundled edition, loaded once for all tests of a process."""

from lmkbc.workspace import Workspace

SPACE = Workspace()
MINI = SPACE.edition("mini")
RELATIONS = {name: SPACE.relation(name) for name in MINI.relations}
TRAIN = SPACE.examples(MINI, "train")
