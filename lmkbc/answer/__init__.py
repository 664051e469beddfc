"""What a model wrote to objects."""
