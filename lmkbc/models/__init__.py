"""Language models; this package knows no relations."""
