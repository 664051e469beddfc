"""Kinds of objects: all that is known of numbers, dates or names stands in the module of their kind."""
