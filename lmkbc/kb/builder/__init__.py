"""Building a knowledge base: from subjects to a linked data set of facts, block by block."""
