"""Asking: worker processes with hard limits, and what they are asked."""
