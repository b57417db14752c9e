"""Studies as single files: ``python -m harness.archive pack results/compas``."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.check import check
from harness.cli.calibrate import calibrate
from harness.cli.scored import misscored, scored
from harness.core.errors import HarnessError, short
from harness.core.processes import be_command
from harness.core.wording import number_of
from harness.evaluation import merging
from harness.evaluation.pace import METHODS, calibrations, machine_of
from harness.evaluation.stated import misstated
from harness.store.archive import (
    ANSWERS,
    ARCHIVES,
    SUFFIX,
    Archive,
    answers_of,
    folder_of,
    has_answers,
    named,
    pack,
    unpack,
    unpacked_anew,
)
from harness.store.run import StoredRun, stored_runs

log = logging.getLogger("harness")
REFERENCES = ("ce_ocl", "dice_random", "nearest")  # compiled search, a library, and plain NumPy
PLACE = f"results/{ARCHIVES}/NAME{SUFFIX}"
REPLACE = "write over an archive that has runs which would be lost"


def main(arguments: list[str] | None = None) -> int:
    """Pack, unpack, merge, verify or calibrate; exit code 1 where that cannot be done, or an answer does not hold."""
    options = _options().parse_args(arguments)
    try:
        return int(options.act(options))
    except HarnessError as fault:
        print(fault, file=sys.stderr)
    except OSError as fault:
        name = fault.filename or "the archive"
        print(f"{name} cannot be read or written ({fault.strerror}); make room, or allow it.", file=sys.stderr)
    except Exception as fault:
        if options.act is _pack:
            raise
        log.debug("where it was read:", exc_info=True)
        names = ", ".join(map(str, getattr(options, "files", None) or [options.file]))  # that anybody may have made
        print(f"{names}: damaged inside ({short(fault)}); get or pack it again.", file=sys.stderr)
    return 1


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m harness.archive", description=__doc__)
    acts = parser.add_subparsers(required=True, metavar="{pack,unpack,merge,verify,calibrate}")
    packing = acts.add_parser("pack", help="write a study's answers, questions and estimators into one file")
    packing.add_argument("folder", type=Path, help="the folder of a study, such as results/compas")
    packing.add_argument("file", type=Path, nargs="?", help=f"the archive (default: {PLACE})")
    packing.add_argument("--replace", action="store_true", help=REPLACE)
    packing.set_defaults(act=_pack)
    unpacking = acts.add_parser("unpack", help="write the folder of a study again")
    unpacking.add_argument("file", type=Path, help=f"an archive, such as {PLACE}")
    unpacking.add_argument(
        "folder",
        type=Path,
        nargs="?",
        help=f"where to (default: of {PLACE} results/NAME, else beside the file)",
    )
    unpacking.set_defaults(act=_unpack)
    joining = acts.add_parser("merge", help="bring the runs of several archives into one")
    joined = "archives with the same questions and estimators; where two have a run, the first has precedence"
    joining.add_argument("files", type=Path, nargs="+", help=joined)
    joining.add_argument("--into", type=Path, required=True, help=f"the archive to write, such as {PLACE}")
    joining.add_argument("--replace", action="store_true", help=REPLACE)
    joining.set_defaults(act=_merge)
    verifying = acts.add_parser("verify", help="check an archive's sums, all answers, verdicts, counts and distances")
    verifying.add_argument("file", type=Path, help=f"an archive, such as {PLACE}")
    verifying.add_argument(
        "--scores", action="store_true", help="and scores by the data sets' rows; none of models trained again"
    )
    verifying.set_defaults(act=_verify)
    calibrating = acts.add_parser("calibrate", help="ask three methods again here, so that seconds can be compared")
    calibrating.add_argument("file", type=Path, help=f"an archive of another machine, such as {PLACE}")
    calibrating.add_argument("--methods", nargs=METHODS, default=REFERENCES, help="(default: %(default)s)")
    calibrating.add_argument("--tasks", nargs="+", default=(), help="data set and model, as compas/lr (default: all)")
    calibrating.set_defaults(act=_calibrate)
    return parser


def _pack(options: argparse.Namespace) -> int:
    folder = named(options.folder)
    if not has_answers(folder / ANSWERS):
        raise HarnessError(f"there are no stored answers in {folder}; give the folder of a study, as results/compas.")
    file = _named(options.file or folder.parent / ARCHIVES / f"{folder.name}{SUFFIX}")
    runs = {path.parent.name: path.parent for path in folder.glob(f"{ANSWERS}/*/cell.json")}
    if not options.replace:
        merging.spare(file, (StoredRun(path).meta for path in runs.values()))
    pack(folder.name, runs, (folder / "sweeps").glob("*"), file)
    print(f"{file}: {number_of(len(runs), 'run')}, {file.stat().st_size / 1e6:.2f} MB")
    return 0


def _unpack(options: argparse.Namespace) -> int:
    folder = options.folder or folder_of(options.file)
    unpack(options.file, folder)
    print(folder)
    return 0


def _merge(options: argparse.Namespace) -> int:
    print("\n".join(merging.merge(options.files, _named(options.into), options.replace)))
    return 0


def _named(file: Path) -> Path:
    if file.suffix != SUFFIX:
        raise HarnessError(f"{file} does not end in {SUFFIX}; give another name.")
    return file


def _verify(options: argparse.Namespace) -> int:
    archive = Archive(options.file)
    metas = archive.metas()
    print(
        f"{options.file}: {number_of(len(metas), 'run')} of the study {archive.manifest['study']}, as they were packed"
    )
    believed = calibrations(unpacked_anew(archive))
    said = [*merging.machines(metas.values()), *merging.limits(metas.values())]
    said += merging.pooled((meta, _code(meta)) for meta in metas.values())
    processors = {str((meta.get("environment") or {}).get("cpu") or "") for meta in metas.values()}
    said += [
        f"{name} is no model's name: seconds of any such processor with as many cores are compared"
        for name in sorted(processors - {""})
        if not any(map(str.isdigit, name))
    ]
    said += [
        f"believed, and not measured here: seconds of {each.source} × {each.factor:.3g} are as those of {each.target}"
        for each in believed
        if not each.doubt
    ]
    print("".join(f"{line}\n" for line in said), end="")
    unlike = list(merging.differences(merging.pieces_of([archive])))
    print("".join(f"{line}\n" for line in unlike), end="", file=sys.stderr)
    wrong = check([options.file], doubts=misstated)
    unscored = _rescore(options.file) if options.scores else 0
    left = "by models that are trained again, or of packages"
    if not options.scores:
        left = "that need training rows or ask the model (but with --scores)"
    print(
        f"not looked at again: proofs, but by what other methods found; scores {left}; tables for readers, as "
        "counterfactuals.csv"
    )
    return int(bool(unlike or wrong or unscored))


def _rescore(file: Path) -> int:
    """Compute the scores of an archive's runs again; returns of how many they are others, or cannot be told."""
    wrong = unknown = 0
    runs = [run for run in stored_runs(answers_of(file)) if scored(run)]
    for run in runs:
        try:
            for sentence in misscored(run):
                wrong += 1
                print(f"{run.label}: {sentence}", file=sys.stderr)
        except HarnessError as fault:
            unknown += 1
            print(fault, file=sys.stderr)
    more = f", and of {unknown} they could not be" if unknown else ""
    print(f"the scores of {len(runs) - unknown} runs were computed again: of {wrong} they are others{more}")
    return wrong + unknown


def _code(meta: Mapping[str, Any]) -> str:
    """The code and the machine that answered, in words."""
    commit = (meta.get("environment") or {}).get("commit") or "that was not noted"
    return f"the code {commit} on {machine_of(meta)}"


def _calibrate(options: argparse.Namespace) -> int:
    for found in calibrate(options.file, options.methods, options.tasks):
        print(
            f"{options.file}: seconds of {found.source} × {found.factor:.3g} are as those of this machine, "
            f"{found.target}: {found.spread}"
        )
    return 0


if __name__ == "__main__":
    be_command(main)
