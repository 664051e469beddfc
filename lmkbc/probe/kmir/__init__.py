"""KMIR: knowledge memorisation, identification and reasoning, built from triples and scored."""
