"""Linking: candidate texts to Wikidata's QIDs, with the evidence for each."""
