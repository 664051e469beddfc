"""Masked models: from clozes to scores of words and names, and the generators that ask them."""
