"""Metrics, one module a theme; each is imported by its dotted path (such as ``metrics.proximity.l1``) when asked for.

All take coherent answers, values of their features, but ``metrics.actionability.incoherent``, which counts the others.
"""
