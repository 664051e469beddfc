"""Local masked models: from clozes to scores of words and names."""
