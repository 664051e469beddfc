"""Training of language models on verbalised facts, with the controls that tell recall from learning."""
