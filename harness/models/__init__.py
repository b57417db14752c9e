"""Estimators: trained, adopted, stored."""
