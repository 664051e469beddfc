"""Exports of a knowledge base: tables, graphs, RDF with provenance, a database, Wikidata's formats, review files."""
