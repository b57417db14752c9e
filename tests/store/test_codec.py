"""Values as JSON and back: what earlier versions stored is read too."""

from __future__ import annotations

from pathlib import Path

from harness.core.objective import Objective, Term
from harness.store.codec import from_plain
from harness.store.plain import to_plain
from harness.store.rows import write_whole


def test_terms_of_earlier_names_are_read() -> None:
    """Weights of evidence had another name, and so had the target of an outcome; other parameters stay."""
    params = {"table": (), "coefficients": (), "intercept": 0.5, "logistic": True}
    now = Objective((Term("woe_l1", 2.0), Term("woe_mahalanobis"), Term("woe_outcome", 3.0, params | {"target": 0.6})))
    stored = to_plain(now)
    for term in stored["terms"]:
        term["name"] = term["name"].replace("woe_", "worth_")
    outcome = stored["terms"][-1]["params"]
    outcome["wish"] = outcome.pop("target")
    assert from_plain(stored) == now
    feature = Term("mad_l1", 1.0, {"wish": 0.1})  # parameters by feature
    assert from_plain(to_plain(feature)) == feature


def test_what_is_no_letter_is_written_as_its_code(tmp_path: Path) -> None:
    """As an error about a file has it whose name is no text."""
    write_whole(tmp_path / "page.html", "caf\udce9 é")
    assert (tmp_path / "page.html").read_text() == "caf\\udce9 é"
