"""Exchanges that list a company. Tricky: a third of companies list nowhere; codes such as TSE or BSE are ambiguous."""

from lmkbc import EntityType, Relation, Shape

NAMES = {
    "New York Stock Exchange": ("NYSE",),
    "London Stock Exchange": ("LSE",),
    "Toronto Stock Exchange": ("TSX",),
    "Nasdaq": ("NASDAQ Stock Market", "Nasdaq Stock Exchange", "Nasdaq Global Select Market"),
    "Australian Stock Exchange": ("ASX", "Australian Securities Exchange"),
    "Taiwan Stock Exchange": ("TWSE",),
    "Hong Kong Stock Exchange": ("HKEX", "SEHK", "Stock Exchange of Hong Kong"),
    "Tel Aviv Stock Exchange": ("TASE",),
    "Indonesia Stock Exchange": ("IDX", "Jakarta Stock Exchange"),
    "Moscow Exchange": ("MOEX",),
    "Singapore Stock Exchange": ("SGX", "Singapore Exchange"),
    "Frankfurt Stock Exchange": ("FWB", "Frankfurter Börse"),
    "Swiss Stock Exchange": ("SIX", "SIX Swiss Exchange"),
    "Euronext Paris": ("Paris Stock Exchange", "Paris Bourse"),
    "Italian Stock Exchange": ("Borsa Italiana", "Milan Stock Exchange"),
    "Korea Exchange (Kosdaq)": ("KOSDAQ",),
    "Korean Stock Exchange": ("Korea Exchange", "KRX"),
    "Nasdaq Helsinki Ltd": ("Helsinki Stock Exchange",),
}
VARIANTS = {spelling: name for name, spellings in NAMES.items() for spelling in spellings}
RELATION = Relation(
    name="stock-exchange",
    names=("companyTradesAtStockExchange",),
    property="P414",
    subject_type=EntityType("company", "Q4830453"),
    object_type=EntityType("stock exchange", "Q11691"),
    kind="entity",
    may_be_empty=True,
    definition="Every stock exchange on which the company's own shares are or were listed. Nothing when it is private.",
    clozes=(
        "{subject} is traded on the {mask} Stock Exchange.",
        "The shares of {subject} are listed on the {mask}.",
        "{subject} is a company that trades on {mask}.",
    ),
    question="On which stock exchanges are the shares of {subject} traded?",
    triple="trades at the stock exchange",
    statement="The shares of {subject} are or were traded on the {object}.",
    cardinality={"2024": (0, 3), "2025": (0, 3), "2026": (0, 3)},
    shape=Shape(variants=VARIANTS, stop=frozenset({"stock exchange", "stock market", "exchange", "private", "public"})),
)
