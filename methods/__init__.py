"""Counterfactual methods; the harness builds them from the ``_target_`` of a configuration."""
