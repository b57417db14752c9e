"""Scripts of the far side are run, not imported."""

collect_ignore = ["asking.py", "far_sides.py"]
