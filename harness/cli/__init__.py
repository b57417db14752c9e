"""The command line: the only folder that knows Hydra."""
