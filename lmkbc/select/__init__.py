"""OtherSources to one scored list, and rules that decide what of it is kept."""
