"""Language models; no relation is known here."""
