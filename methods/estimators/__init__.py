"""Fitted estimators as arrays that methods compute with."""
