"""Options, tables of a notebook, the terminal and dry runs: all that functions and commands share."""
