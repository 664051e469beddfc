"""The default generator, which needs no language model and no network, only an edition's labelled rows."""
