"""Exact search over the cells that the splits of a tree ensemble cut the feature space into."""
