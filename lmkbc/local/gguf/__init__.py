"""GGUF files, the format of llama.cpp and related programs: read as data and converted once for transformers."""
