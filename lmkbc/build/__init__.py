"""Building a knowledge base: subjects in, a linked data set of facts out, block by block."""
