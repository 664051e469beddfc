"""KAMEL (Kalo and Fichtel 2022): 234 relations, answers of any number."""
