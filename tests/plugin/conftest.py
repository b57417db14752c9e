"""Scripts of the far side are run, not imported."""

collect_ignore_glob = ["loans_plugin/far/*"]
