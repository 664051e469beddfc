"""LAMA (Petroni et al. 2019): single-token objects, P@1."""
