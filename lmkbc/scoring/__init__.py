"""Matching of answers with gold, and the averages that editions print."""
