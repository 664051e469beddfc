"""Prompts: from relation, query and examples to the text that a model reads."""
