"""Training of masked language models on verbalised facts, with the controls that tell recall from learning."""
