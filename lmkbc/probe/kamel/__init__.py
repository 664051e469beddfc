"""KAMEL (Kalo and Fichtel 2022): 234 relations, questions with any number of answers."""
