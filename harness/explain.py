"""One explanation on the console: ``python -m harness.explain dataset=compas model=rf method=ce_ocl factual=3``."""

from __future__ import annotations

import sys

from harness.cli.explained import explained
from harness.core.errors import HarnessError
from harness.reports.person import as_text, legend


def main() -> None:
    """Print what a counterfactual means for one person; settings are those of ``python -m harness``.

    ``factual`` is the number of a row of the dataset, as in stored answers, or a CSV file with people.
    """
    arguments = [
        f"factuals={value}" if key == "factual" else argument
        for argument in sys.argv[1:]
        for key, _, value in [argument.partition("=")]
    ]
    try:
        if not any(argument.startswith("factuals=") for argument in arguments):
            raise HarnessError("no factual is given; name the number of a row, factual=3, or a CSV file.")
        for place, (explanation, claim) in enumerate(explained(arguments)):
            parts = "" if place == 0 else "\n", as_text(explanation), legend(explanation, claim)
            print("\n".join(filter(None, parts)))
    except HarnessError as fault:
        print(fault, file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
