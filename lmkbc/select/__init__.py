"""Selection: which of a query's scored candidates to keep, and when to say nothing."""
