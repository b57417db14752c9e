"""The papers' tables, figures and claims, one module a paper: ``TABLES``, ``FIGURES``, ``CLAIMS``."""
