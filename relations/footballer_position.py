"""Position of a football player. Tricky: the gold calls wingers "wing half" and every left or right back "fullback"."""

from lmkbc import EntityType, Relation, Shape

POSITIONS = {
    "goalkeeper": ("goalkeepers", "goalie", "keeper", "goal keeper"),
    "defender": ("defenders", "defence", "defense", "back"),
    "centre-back": ("center-back", "centre back", "center back", "central defender", "stopper"),
    "fullback": ("full-back", "full back", "left back", "left-back", "right back", "right-back", "wing-back"),
    "midfielder": ("midfielders", "midfield", "left midfielder", "right midfielder", "wide midfielder"),
    "central midfielder": ("centre midfielder", "center midfielder", "central midfield"),
    "attacking midfielder": ("offensive midfielder", "attacking midfield", "playmaker"),
    "defensive midfielder": ("holding midfielder", "defensive midfield"),
    "wing half": ("wing-half", "winger", "wingers", "left winger", "right winger", "left wing", "right wing", "wing"),
    "forward": ("forwards", "striker", "strikers", "attacker", "attackers", "second striker"),
    "centre-forward": ("center-forward", "centre forward", "center forward"),
}
RELATION = Relation(
    name="footballer-position",
    names=("FootballerPlaysPosition",),
    property="P413",
    subject_type=EntityType("football player", "Q937857"),
    object_type=EntityType("association football position", "Q4611891"),
    kind="entity",
    may_be_empty=False,
    definition="The position or positions in which the footballer mainly plays, as precisely as is known.",
    clozes=(
        "{subject} plays football as a {mask}.",
        "{subject} is a footballer whose position is {mask}.",
        "The footballer {subject} is known as a {mask}.",
    ),
    question="In which position does the football player {subject} play?",
    triple="plays football in the position",
    statement="{subject} plays or played football as a {object}.",
    cardinality={"2023": (1, 2)},
    shape=Shape(closed=POSITIONS),
)
