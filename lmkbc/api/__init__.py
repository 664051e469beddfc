"""What Python callers use, a function per verb of the command: nothing is printed, tables come as data frames."""
