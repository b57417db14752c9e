"""What a forked command finds imported already; importing this module runs nothing of a sweep."""

from importlib import import_module

from sqlalchemy.orm import configure_mappers

MODULES = (
    "hydra._internal.core_plugins.basic_launcher",
    "mlflow.store.tracking.sqlalchemy_store",
    "harness.check", "harness.figures", "harness.report", "harness.tables",
    "harness.cli.ending", "harness.cli.explained", "harness.cli.job",
    "methods.ce_ocl", "methods.robust", "methods.md_pso", "methods.dice", "methods.nearest", "methods.scorecard",
    "methods.column_generation", "methods.group_greedy", "methods.peers.nice", "methods.peers.cfnow",
    "methods.carla.face", "methods.carla.growing_spheres", "methods.carla.focus", "methods.carla.feature_tweak",
)  # fmt: skip

for module in MODULES:
    import_module(module)
configure_mappers()
