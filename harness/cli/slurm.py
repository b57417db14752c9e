"""What submitit cannot know of a Slurm cluster."""

from __future__ import annotations

import subprocess

from harness.cli.process import log


def know_jobs_by_their_files() -> None:
    """Where Slurm keeps no accounts, say so once, and have submitit look at jobs' files alone, which it does anyway."""
    try:
        asked = subprocess.run(["sacct"], capture_output=True, text=True, check=False)
        why = "" if asked.returncode == 0 else asked.stderr.strip() or f"exit code {asked.returncode}"
    except OSError as fault:
        why = str(fault)
    if not why:
        return
    from submitit.slurm.slurm import SlurmInfoWatcher, SlurmJob  # optional

    class Silent(SlurmInfoWatcher):
        def update(self) -> None: ...

    SlurmJob.watcher = Silent()
    log.warning(
        "sacct says nothing (%s): a job that Slurm itself ends is waited for; then stop this with Ctrl-C and go on.",
        why.splitlines()[-1],
    )
