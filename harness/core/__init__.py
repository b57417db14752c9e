"""The question and the answer, as plain data."""
