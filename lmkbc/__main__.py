"""`python -m lmkbc`."""

from lmkbc.cli import main

main()
