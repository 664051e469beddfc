"""OptiPrompt (Zhong, Friedman and Chen 2021): soft prompts against fine-tuning and controls."""
