"""GGUF files, in which llama.cpp and its kin keep models: read as data and unpacked once for transformers."""
