"""Commands of a knowledge base, one module each."""
