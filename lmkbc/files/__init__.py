"""Files: read with every error named, written whole or not at all, fetched and checked."""
