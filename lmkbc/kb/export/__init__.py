"""Exports of a knowledge base: triples, statements, Wikidata's JSON, and QuickStatements for review."""
