"""Training of language models on verbalised facts, with controls that separate recall from learning."""
