"""The command line, and where Hydra looks for choices."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import ClassVar

import hydra
from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.plugins import Plugins
from hydra.errors import HydraException
from hydra.plugins.search_path_plugin import SearchPathPlugin
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError  # type: ignore[import-untyped]

from harness.cli import composition, environments, listing, plugins, ui, warm
from harness.cli.arguments import readable, sentence
from harness.cli.process import log, study_name, talk
from harness.cli.sweep import Sweep
from harness.core import packages
from harness.core.errors import HarnessError
from harness.core.packages import CONF

CLUSTERS = {"ray", "submitit"}  # modules of the errors that end a sweep with one of its runs
INFO = "harness.cli.info"  # imported only where it is asked for, as it loads pooch, psutil and numba

sys.warnoptions.append("ignore:resource_tracker")  # after Ctrl-C, of joblib's semaphores, which are freed anyway
# Where a job runs in another process, importing this module is all the set-up it gets.
composition.quicken()
OmegaConf.register_new_resolver("study_name", lambda *, _root_: study_name(_root_.study, _root_.hydra), replace=True)
OmegaConf.register_new_resolver("cores", lambda jobs, threads: int(jobs) * int(threads), replace=True)


def main() -> None:
    """Run the command line. The exit code is 1 where a cell failed or a method refused, 130 after Ctrl-C."""
    talk()
    try:
        if _answered(sys.argv[1:]):
            return
    except KeyboardInterrupt:
        log.warning("interrupted")
        sys.exit(130)
    os.environ.setdefault("HYDRA_FULL_ERROR", "1")  # errors come here, and are printed as one sentence
    if (here := os.getcwd()) not in sys.path:
        sys.path.append(here)  # a module of one's own is found as with python -m, whatever started this
    try:
        sys.argv[1:] = [readable(argument) for argument in extend(sys.argv[1:])]
        Plugins.instance().register(SearchPath)
        hydra.main(config_path=str(CONF), config_name="config", version_base="1.3")(run_job)()
    except KeyboardInterrupt:
        forced = " without force=true" * any(text.lower() == "force=true" for text in sys.argv)
        log.warning("interrupted: what was answered is kept, and the same command%s goes on from there", forced)
        sys.exit(130)
    except (HydraException, OmegaConfBaseException, YAMLError) as fault:
        log.error(sentence(_cause(fault)))
        sys.exit(1)
    except OSError as fault:
        log.error("%s cannot be written (%s); give another output_dir.", fault.filename or "a file", fault.strerror)
        sys.exit(1)
    except Exception as fault:
        if type(fault).__module__.partition(".")[0] not in CLUSTERS:
            raise
        lost = "a run was ended by the cluster (%s); what was answered is kept, and the same command goes on from there"
        log.debug("%s", fault)
        log.error(lost, next(filter(None, reversed(str(fault).splitlines())), type(fault).__name__))
        sys.exit(1)
    sys.exit(1 if Sweep.faults else 0)


def _answered(arguments: list[str]) -> bool:
    """Whether the arguments are a command that needs no Hydra, which is done."""
    match arguments:
        case ["--version"]:
            print(f"ce-harness {packages.version('ce-harness')}")
        case ["info"]:
            print(*import_module(INFO).lines(), sep="\n")
        case ["warm"]:
            warm.compile_all()
        case ["environments", *further]:
            _or_exit(lambda: environments.run(further, packages.conf_folders()))
        case ["ui", *further]:
            _or_exit(lambda: ui.serve(further))
        case ["list", *further]:
            _list(further)
        case _:
            return False
    return True


def _cause(fault: Exception) -> Exception:
    """What is wrong where Hydra complains of several values: of an experiment that sweeps, whatever else is."""
    if not str(fault).startswith("Ambiguous value"):
        return fault
    parsed = OverridesParser.create().parse_overrides([argument for argument in sys.argv[1:] if "=" in argument])
    try:
        with hydra.initialize_config_dir(str(CONF), version_base="1.3"):
            hydra.compose("config", [str(each.input_line) for each in parsed if not each.is_sweep_override()])
    except (HydraException, OmegaConfBaseException, YAMLError) as cause:
        return cause
    return fault


def _or_exit(act: Callable[[], object]) -> None:
    """Do something; what cannot be done is a sentence, and exit code 1."""
    try:
        act()
    except (HarnessError, OSError) as fault:
        log.error("%s", fault)
        sys.exit(1)


def _list(arguments: list[str]) -> None:
    """Print the choices of the kinds that are named, plug-ins' included."""
    folders = packages.conf_folders()
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # head and less may have seen enough
    _or_exit(lambda: print("\n\n".join(listing.listed(kind, folders) for kind in arguments or listing.KINDS)))


def run_job(config: DictConfig) -> float:
    """``harness.cli.job.run_job``, imported only where there is a job: help and wrong input are answered at once."""
    from harness.cli import job  # slow: all libraries that a job needs

    return job.run_job(config)


class SearchPath(SearchPathPlugin):
    """Has Hydra look for choices in installed plug-ins, too, and in the folders of ``hydra.searchpath``."""

    asked: ClassVar[list[str]] = []  # of the command line: file:///path/to/conf, pkg://package.conf, or a plain path

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        known = [CONF.resolve()]
        for where in self.asked:
            scheme, _, path = where.rpartition("://")
            named = scheme == "pkg"
            folder = packages.locate(path.replace("/", ".").strip(".")) if named else Path(path).expanduser()
            if why := plugins.misfit("hydra.searchpath", where, folder):
                raise HydraException(why)
            self._append("hydra.searchpath", folder, search_path, known)
        for who, where in plugins.installed():
            folder = packages.locate(where)
            if why := plugins.misfit(who, where, folder):
                log.warning("%s", why)  # a run that does not use it goes on
            else:
                self._append(who, folder, search_path, known)

    def _append(self, who: str, folder: Path | None, search_path: ConfigSearchPath, known: list[Path]) -> None:
        assert folder is not None
        folder = folder.resolve()
        if folder in known:  # $PWD/conf, in a clone
            return
        for name in plugins.hidden(folder, known):
            log.warning("%s has a %s that is never used, since another comes before it; rename it.", who, name)
        search_path.append(who, f"file://{folder}")
        known.append(folder)


def extend(arguments: list[str]) -> list[str]:
    """The arguments without ``hydra.searchpath``, which ``SearchPath`` takes over, so that ``--help`` knows it too.

    Flags come first: between settings, Hydra would not know those that follow.
    """
    arguments = sorted(arguments, key=lambda argument: argument not in ("-m", "--multirun"))
    rest = []
    for argument in arguments:
        if argument.startswith("hydra.searchpath="):
            value = OverridesParser.create().parse_override(argument).value()
            SearchPath.asked = [str(path) for path in (value if isinstance(value, list) else [value])]
        else:
            rest.append(argument)
    return rest
