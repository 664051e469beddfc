"""What functions and commands share: options, tables of a notebook, the terminal, dry runs."""
