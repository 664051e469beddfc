"""Chemical elements in a compound. Tricky: models name groups, ions and rings, and a masked model proposes words."""

from lmkbc import EntityType, Relation, Shape

# Name, symbol (none past uranium, none that is a word: As, At, Be, He, Ho, I, In, Pa), other spellings.
ELEMENTS = """
actinium Ac
aluminium Al aluminum
americium
antimony Sb
argon Ar
arsenic
astatine
barium Ba
berkelium
beryllium
bismuth Bi
bohrium
boron B
bromine Br
cadmium Cd
caesium Cs cesium
calcium Ca
californium
carbon C
cerium Ce
chlorine Cl
chromium Cr
cobalt Co
copernicium
copper Cu
curium
darmstadtium
dubnium
dysprosium Dy
einsteinium
erbium Er
europium Eu
fermium
flerovium
fluorine F
francium Fr
gadolinium Gd
gallium Ga
germanium Ge
gold Au
hafnium Hf
hassium
helium
holmium
hydrogen H
indium
iodine
iridium Ir
iron Fe
krypton Kr
lanthanum La
lawrencium
lead Pb
lithium Li
livermorium
lutetium Lu
magnesium Mg
manganese Mn
meitnerium
mendelevium
mercury Hg
molybdenum Mo
moscovium
neodymium Nd
neon Ne
neptunium
nickel Ni
nihonium
niobium Nb
nitrogen N
nobelium
oganesson
osmium Os
oxygen O
palladium Pd
phosphorus P
platinum Pt
plutonium
polonium Po
potassium K
praseodymium Pr
promethium Pm
protactinium
radium Ra
radon Rn
rhenium Re
rhodium Rh
roentgenium
rubidium Rb
ruthenium Ru
rutherfordium
samarium Sm
scandium Sc
seaborgium
selenium Se
silicon Si
silver Ag
sodium Na
strontium Sr
sulfur S sulphur
tantalum Ta
technetium Tc
tellurium Te
tennessine
terbium Tb
thallium Tl
thorium Th
thulium Tm
tin Sn
titanium Ti
tungsten W wolfram
uranium U
vanadium V
xenon Xe
ytterbium Yb
yttrium Y
zinc Zn
zirconium Zr
""".strip()
ENDS = ("", " atom", " atoms", " ion", " ions")
CLOSED = {names[0]: tuple(n + end for n in names for end in ENDS) for names in map(str.split, ELEMENTS.splitlines())}
RELATION = Relation(
    name="compound-elements",
    names=("ChemicalCompoundElement", "CompoundHasParts"),
    property="P527",
    subject_type=EntityType("chemical compound", "Q11173", ("Q113145171", "Q79529")),
    object_type=EntityType("chemical element", "Q11344"),
    kind="entity",
    may_be_empty=False,
    definition="Every chemical element in the compound's formula, by English name; no groups, ions or molecules.",
    clozes=(
        "{subject} is a compound that contains the element {mask}.",
        "{subject} consists of {mask} and other chemical elements.",
        "The molecules of {subject} contain {mask} atoms.",
    ),
    question="Which chemical elements does {subject} consist of?",
    triple="contains the chemical element",
    statement="The chemical compound {subject} contains the element {object}.",
    cardinality={"2022": (2, 6), "2023": (2, 6)},
    shape=Shape(closed=CLOSED),
)
