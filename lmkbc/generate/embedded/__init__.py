"""The default generator: needs no language model and no network, only an edition's train split."""
