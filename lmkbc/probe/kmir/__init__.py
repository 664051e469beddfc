"""KMIR: knowledge memorisation, identification and reasoning, with questions built from triples."""
