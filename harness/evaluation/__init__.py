"""Judging: the checker, the scores, the export."""
