"""How an answer matches gold, and the averages that editions print."""
