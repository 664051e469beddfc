"""BEAR (Wiland et al. 2024): options as whole sentences, for causal and masked models."""
