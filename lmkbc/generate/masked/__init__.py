"""Candidates from masked language models: clozes, their ensembles, and objects of several tokens."""
