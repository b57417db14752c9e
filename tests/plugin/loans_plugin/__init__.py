"""A method, a metric, a dataset and a model, in a package of their own."""
