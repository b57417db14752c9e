"""A sweep on one page: scores side by side, statistics, figures, failures, and a ranking per requirement."""
