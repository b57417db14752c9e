"""An independent verdict on stored answers: ``python -m harness.check results/compas``.

Where a study regenerates a published table, the published counterfactuals and means are judged as well.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.core.errors import HarnessError, short
from harness.core.processes import be_command
from harness.core.wording import UNCHECKED
from harness.evaluation import retrained
from harness.evaluation.checker import ACCEPTED, FAULTS, judge
from harness.evaluation.checker import verdicts as verdicts_of
from harness.evaluation.proofs import contradicted
from harness.reports import registry
from harness.store.run import StoredRun, stored_runs

Doubts = Callable[[StoredRun, list[dict[str, Any]]], Iterable[str]]


def main(arguments: list[str] | None = None) -> int:
    """Check every run under the folders given; the exit code is as that of ``check``."""
    parser = argparse.ArgumentParser(prog="python -m harness.check", description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path, help="results folders, such as results/compas, or archives")
    parser.add_argument("--trust", action="store_true", help="read models from pickles, which runs their makers' code")
    options = parser.parse_args(arguments)
    return check(options.folders, options.trust)


def check(folders: Iterable[Path], trust: bool = False, doubts: Doubts = lambda run, verdicts: ()) -> int:
    """Check every run under some folders; 1 where a counterfactual does not hold, or a run cannot be read, else 0.

    An invalid point of a method that claims nothing is its answer, if a bad one, and counted apart; but not one that
    was accepted when it was stored.

    Parameters
    ----------
    doubts
        What else is wrong with a run, in sentences, given the verdicts on its answers.
    """
    faults = total = unread = missed = doubted = 0
    for folder in folders:
        try:
            found = stored_runs(folder, trust)
        except HarnessError as fault:
            print(fault, file=sys.stderr)
            return 1
        read, before_this = [], faults
        for run in found:
            try:
                before = run.verdicts()
                stores = run.done and not before  # one that is asked now is judged by its sweep at the end
                verdicts, claims = judge(run) if stores else verdicts_of(run), run.objective is not None
                wrongs = list(doubts(run, verdicts))
                changed, absent = retrained.faults(run, verdicts)
            except Exception as fault:
                if not (run.packed or isinstance(fault, HarnessError)):
                    raise
                unread += 1  # anybody may have made an archive
                print(fault if isinstance(fault, HarnessError) else _unreadable(run, fault), file=sys.stderr)
                continue
            words = Counter(verdict["verdict"] for verdict in verdicts)
            stated = {(v["factual"], v["ce"]): v["verdict"] for v in before}
            wrong = [v for v in verdicts if _is_wrong(v, stated.get((v["factual"], v["ce"])))]
            broken = [v for v in wrong if claims or stated.get((v["factual"], v["ce"]), "invalid") not in FAULTS]
            present = sum(words.values()) - words["none"]
            total += present
            faults += len(broken)
            missed += len(wrong) - len(broken)
            wrongs += changed
            doubted += len(wrongs)
            listed = ", ".join(f"{count} {word}" for word, count in sorted(words.items()) if word != "none")
            unsettled = sum(verdict.get("region") == UNCHECKED for verdict in verdicts)
            regions = f"; {unsettled} regions {UNCHECKED}" if unsettled else ""
            gone = f"; {absent} retrained models are not in this cache: {UNCHECKED}" if absent else ""
            print(f"{run.label}: {present} counterfactuals: {listed or 'none'}{regions}{gone}")
            read.append((run, verdicts))
            for sentence in wrongs:
                print(f"{run.label}: {sentence}", file=sys.stderr)
        doubted += _say_what_is_contradicted(read)
        doubted += 0 if faults > before_this else _say_what_is_excluded([run for run, _ in read])
    print(f"{total} stored counterfactuals checked, {faults} of them do not hold")
    if missed:
        print(f"{missed} more are not valid, by methods that claim nothing of them")
    if unread:
        print(f"{unread} runs could not be read", file=sys.stderr)
    return 1 if faults or unread or doubted else 0


def _is_wrong(verdict: Mapping[str, Any], stated: str | None) -> bool:
    """Whether a verdict is a fault, or another one than ``accepted`` on what was accepted when it was stored."""
    return verdict["verdict"] in FAULTS or (stated == ACCEPTED != verdict["verdict"])


def _say_what_is_contradicted(read: Sequence[tuple[StoredRun, list[dict[str, Any]]]]) -> int:
    """Print which proofs of some runs a counterfactual contradicts; how many, or 1 where that cannot be told."""
    try:
        said, held = contradicted(read)
    except Exception as fault:
        if not any(run.packed for run, _ in read):
            raise
        said, held = [f"proofs cannot be held against counterfactuals ({short(fault)})."], 0
    for sentence in said:
        print(sentence, file=sys.stderr)
    if held:
        print(f"{held} proofs were held against all that methods found for the same question: {len(said)} are wrong")
    return len(said)


def _say_what_is_excluded(read: Sequence[StoredRun]) -> bool:
    """Print what some runs exclude of published tables; True where that cannot be told of an archive."""
    try:
        for sentence in proven_wrong(read):
            print(sentence)
    except Exception as fault:
        if not any(run.packed for run in read):
            raise
        print(f"what the answers exclude of a paper's table cannot be told ({short(fault)}).", file=sys.stderr)
        return True
    return False


def _unreadable(run: StoredRun, fault: Exception) -> str:
    return (
        f"{run.path.name} cannot be judged, as what is stored of it is damaged ({short(fault)}); get or pack it again."
    )


def proven_wrong(found: Sequence[StoredRun]) -> Iterator[str]:
    """What the models and the answers of some runs exclude of the published tables that they regenerate, in lines.

    To be believed as far as the answers hold.
    """
    runs: dict[str | None, list[StoredRun]] = {}
    for run in found:
        runs.setdefault(run.meta.get("config", {}).get("table"), []).append(run)
    for name, table in registry.known().items() if any(runs) else ():
        if name not in runs or not isinstance(table, registry.Refutes):
            continue
        lines, looked = table.refuted(runs[name])
        if looked:
            yield f"{name}: {len(lines)} of {looked} published numbers that can be judged are proven wrong"
        yield from (f"{name}: {line.place}: {line.published}: {line.why}" for line in lines)


if __name__ == "__main__":
    be_command(main)
