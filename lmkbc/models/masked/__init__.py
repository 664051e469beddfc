"""Local masked models: clozes in, scores of words and names out."""
