"""Counterfactual methods, one file each; the harness builds them from the ``_target_`` of a configuration."""
