"""What a table shows of itself that a user should know before asking anything about it."""

from __future__ import annotations

import logging
from dataclasses import replace

from harness.core.python import warn
from harness.data.dataset import Dataset
from harness.data.encoded import encoded
from harness.data.leaks import leaks

logger = logging.getLogger(__name__)


def with_findings(dataset: Dataset) -> Dataset:
    """The dataset with columns that give the target away, or came encoded, among its notices; each is logged.

    As a warning, which a notebook shows without having set up any logging.
    """
    for notice in (notices := (*leaks(dataset), *encoded(dataset))):
        warn(logger, notice)
    return replace(dataset, notices=(*notices, *dataset.notices))
