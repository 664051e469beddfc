"""Texts as they are written."""

from lmkbc.kinds.kind import Kind

STRING = Kind()
