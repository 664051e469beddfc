"""Files: read with precise errors, written completely or not at all, downloaded and checked."""
