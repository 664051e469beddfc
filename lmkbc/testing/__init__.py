"""Cases that every component of a kind keeps to, for the tests of plug-ins. Nothing of the engine imports them.

`exports`: what a format writes of facts. A failed case is an AssertionError, so any runner of tests shows it.
"""
