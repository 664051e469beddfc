"""A session: the user's options, the data, and what the steps of a run share."""
