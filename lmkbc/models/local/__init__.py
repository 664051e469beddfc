"""Local causal models, the tokens that prompts share encoded once."""
