"""Explanations of the factuals that a command line names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.core.hydra_config import HydraConfig
from hydra.core.plugins import Plugins
from hydra.errors import HydraException
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError  # type: ignore[import-untyped]

from harness.cli.arguments import readable, sentence
from harness.cli.build import build_task, names_of
from harness.cli.composition import unknown
from harness.cli.main import SearchPath, extend
from harness.core.errors import HarnessError
from harness.core.method import prepare
from harness.core.objective import Objective
from harness.core.packages import CONF
from harness.core.wording import SATISFIED
from harness.execution.clocks import told
from harness.execution.contract import refused
from harness.execution.experiment import entropy
from harness.execution.pool import Limits, Outcome, Pool
from harness.execution.satisfied import ASK, WithoutCopies
from harness.execution.start import Started
from harness.library import in_context
from harness.reports.person import Explained


def explained(arguments: list[str], spare: Started | None = None) -> Iterator[tuple[Explained, Objective | None]]:
    """Explain each factual that command-line arguments name; nothing is stored, and MLflow is left out.

    ``spare`` is a worker that was started meanwhile.

    Yields
    ------
    The answers with their context, and the objective that the method claims for them.

    Raises
    ------
    HarnessError
        For arguments that do not fit.
    """
    try:
        arguments = [readable(argument) for argument in extend(arguments)]
        Plugins.instance().register(SearchPath)
        with initialize_config_dir(str(CONF), version_base="1.3"):
            config = compose("config", arguments, return_hydra_config=True)
        if why := unknown(config):
            raise HarnessError(why)
        HydraConfig.instance().set_config(config)
        settings = OmegaConf.masked_copy(config, [str(key) for key in config if key != "hydra"])
        plain, task, method = build_task(settings, names_of(settings), None)
    except (HydraException, OmegaConfBaseException, YAMLError) as fault:
        raise HarnessError(sentence(fault, sweeps=False)) from fault
    if plain["group"]:
        raise HarnessError("group does not fit one person's explanation; leave it out.")
    limits = Limits(plain["time_limit"], plain["fit_time_limit"], plain["memory_limit"], plain["threads"])
    count, seed = plain["n_counterfactuals"], entropy(plain["seed"])
    prepare(method)
    content = task.content(task.factuals)
    asked = task.factuals if plain["satisfied"] == ASK else task.factuals.loc[~content]
    if plain["satisfied"] == ASK:
        method = WithoutCopies(method, frozenset(task.factuals.index[content]))
    outcomes, early = Pool(spare=spare).explain(method, task.problem, asked, count, seed, limits), dict[Any, Outcome]()
    for index in task.factuals.index:
        factual, problem = task.factuals.loc[[index]], task.problem(index)
        found, claim = refused(count, SATISFIED), None
        if index in asked.index:
            while index not in early:  # people who want the same are asked about together
                with told("waiting for the method, which fits once for all people"):
                    outcome = next(outcomes)
                early[outcome.factual] = outcome
            found, claim = early[index].explanation, early[index].claim
        yield in_context(found, claim, problem, factual), claim
