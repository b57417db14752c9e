"""One explanation on the console: ``python -m harness.explain dataset=compas model=rf method=ce_ocl factual=2872``."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

from harness.cli.process import talk
from harness.core.errors import HarnessError
from harness.core.packages import CONF
from harness.core.processes import be_command
from harness.execution.start import start

USAGE = """\
usage: python -m harness.explain factual=ROW|FILE [plot=FILE] [SETTING=VALUE ...]

Prints what counterfactuals would change of one person. Nothing is stored, but the figure of plot=FILE.

  factual=2872         the number of a row of the dataset, as in stored answers; several: factual=[2872,7]
  factual=people.csv   the people in a CSV file with the features as columns
  plot=person.svg      draw it, too: what changes, on the range and distribution of each feature; also .pdf and .png
  SETTING=VALUE        as for python -m harness, such as dataset, model, method, n_counterfactuals, desired, time_limit

examples:
  python -m harness.explain dataset=compas model=rf method=ce_ocl factual=2872
  python -m harness.explain dataset=compas model=rf method=ce_ocl factual=2872 n_counterfactuals=3 desired="not High"
  python -m harness.explain dataset=csv dataset.path=loans.csv dataset.target=approved factual=people.csv

python -m harness list methods names the methods, one line each; likewise datasets and models."""


def main() -> None:
    """Print what a counterfactual means for one person; settings are those of ``python -m harness``.

    ``factual`` is the number of a row of the dataset, as in stored answers, or a CSV file with people.
    """
    if {"-h", "--help"} & set(sys.argv[1:]):
        print(USAGE)
        return
    arguments = [
        f"factuals={value}" if (key, equals) == ("factual", "=") else argument
        for argument in sys.argv[1:]
        for key, equals, value in [argument.partition("=")]
    ]
    try:
        plots = [argument.removeprefix("plot=") for argument in arguments if argument.startswith("plot=")]
        arguments = [argument for argument in arguments if not argument.startswith("plot=")]
        if not any(argument.startswith("factuals=") for argument in arguments):
            raise HarnessError("no factual is given; name the number of a row, factual=3, or a CSV file.")
        # Beside it, this process imports what it needs itself; one thread is what workers have unless told otherwise.
        told = any(argument.startswith("threads=") for argument in arguments)
        spare = None if told else start(1, modules=("sklearn.ensemble", *_module(arguments)))
        from harness.cli.explained import explained  # slow: all libraries that a dataset, a model and a method need
        from harness.reports.person import check_plot, legend, several  # slow: pandas

        plot = check_plot(plots[-1]) if plots else None
        drawn = []
        for place, (explanation, claim) in enumerate(explained(arguments, spare)):
            parts = "" if place == 0 else "\n", str(explanation), legend(explanation, claim)
            print("\n".join(filter(None, parts)))
            drawn += [explanation] if plot else []
        for explanation, path in several(drawn, plot) if plot else ():
            explanation.plot(path)
            print(path)
    except HarnessError as fault:
        print(fault, file=sys.stderr)
        sys.exit(1)


def _module(arguments: Sequence[str]) -> list[str]:
    """The module of the method that arguments choose, where its file names one."""
    chosen = [argument.removeprefix("method=") for argument in arguments if argument.startswith("method=")]
    try:
        text = (CONF / "method" / f"{chosen[-1] if chosen else ''}.yaml").read_text()
    except OSError:  # a method of the user's own, or none: what is wrong is told later
        return []
    return re.findall(r"^_target_: ([\w.]+)\.\w+$", text, re.MULTILINE)


if __name__ == "__main__":
    talk()
    be_command(main)
