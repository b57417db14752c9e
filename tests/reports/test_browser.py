"""What a person sees in a browser: MLflow's pages of a finished sweep, and the report at two widths."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import matplotlib.image
import numpy as np
import pandas as pd
import pytest
from mlflow import MlflowClient
from support.served import served
from support.sweep import runner

from harness.store.run import stored_runs

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
SWEEP = ("-m", "dataset=pima", "model=cart,lr", "method=ce_ocl,dice_random", "n_factuals=3")
FRAME = """<title>waiting</title><iframe width="{width}" height="800" src="report.html" onload="
document.title = this.contentDocument.documentElement.scrollWidth"></iframe>"""

pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")]


def browse(address: str, *arguments: str, width: int = 1920, height: int = 3000) -> str:
    """Have Chromium open a page; returns what became of its HTML."""
    assert CHROMIUM
    size = f"--window-size={width},{height}"
    fixed = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--allow-file-access-from-files")
    command = [CHROMIUM, *fixed, size, "--virtual-time-budget=20000", *(arguments or ("--dump-dom",)), address]
    return subprocess.run(command, capture_output=True, text=True, timeout=180, check=True).stdout


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("browser")
    done = runner(folder)(*SWEEP)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def client(swept: Path) -> MlflowClient:
    return MlflowClient(f"sqlite:///{swept / 'mlflow.db'}")


@pytest.fixture(scope="module")
def experiment(client: MlflowClient) -> str:
    """Its number in the store."""
    found = client.get_experiment_by_name("adhoc")
    assert found is not None
    return str(found.experiment_id)


@pytest.fixture(scope="module")
def server(swept: Path) -> Iterator[str]:
    """MLflow's own server, with the settings that the README gives."""
    with served(swept, "ui", module="harness") as address:
        yield address


def test_the_compare_page_shows_the_numbers(swept: Path, client: MlflowClient, experiment: str, server: str) -> None:
    """Of each run under its name, as the stored scores give them."""
    runs = client.search_runs([experiment], "tags.fingerprint != ''")
    chosen = [run.info.run_id for run in runs]
    query = f"runs={quote(json.dumps(chosen))}&experiments={quote(json.dumps([experiment]))}"
    page = browse(f"{server}/#/compare-runs?{query}")
    shown = _metrics(page)
    assert {run.info.run_name for run in runs} == {cell.label for cell in stored_runs(swept / "results" / "adhoc")}
    names = [run.info.run_name for run in runs]
    assert [page.index(f">{name}<") for name in names] == sorted(page.index(f">{name}<") for name in names)
    found = {cell.label: cell for cell in stored_runs(swept / "results" / "adhoc")}
    for metric in ("distance/gower", "distance/l0", "distance/l1"):
        for name, text in zip(names, shown[metric], strict=True):
            expected = pd.read_csv(found[name].path / "scores.csv")[metric].mean()
            assert float(text) == pytest.approx(expected, abs=6e-4), (metric, name)  # it shows three decimals


def _metrics(page: str) -> dict[str, list[str]]:
    """The numbers of the compare page's table of metrics: a grid whose cells have places, not rows."""
    part = page[page.index(">Metrics<") : page.index(">Artifacts<")]
    place = r'left: (\d+)px; position: absolute; top: (\d+)px; width: \d+px;">'
    named = dict(re.findall(r'top: (\d+)px; width: \d+px;"><a [^>]*>([^<]+)<', part))
    table: dict[str, list[tuple[int, str]]] = {}
    for left, top, text in re.findall(place + r"<span[^>]*>([^<]*)</span>", part):
        if top in named:
            table.setdefault(html.unescape(named[top]), []).append((int(left), text))
    return {name: [text for _, text in sorted(row)] for name, row in table.items()}


@pytest.mark.parametrize(
    ("mode", "shown"),
    [
        ("", ("coverage", "proximity", "seconds", "sparsity", "validity")),
        ("&compareRunsMode=CHART", ("Model metrics",)),
    ],
    ids=["list", "charts"],
)
def test_the_printed_page_needs_no_setting_up(mode: str, shown: tuple[str, ...], experiment: str, server: str) -> None:
    """Every run by name; in the list the first numbers as columns, and one section of charts above all others."""
    page = browse(f"{server}/#/experiments/{experiment}/runs?viewStateShareKey=ce-harness{mode}")
    for name in ("pima/cart/ce_ocl", "pima/lr/dice_random", *shown):
        assert f">{name}" in page


def test_a_run_knows_its_data_and_shows_its_changes(swept: Path, client: MlflowClient, experiment: str) -> None:
    """Name, digest and columns of the dataset; in the table of counterfactuals, each change as a reader wants it."""
    found = {cell.label: cell for cell in stored_runs(swept / "results" / "adhoc")}
    for run in client.search_runs([experiment], "tags.fingerprint != ''"):
        cell = found[run.info.run_name]
        assert run.inputs is not None
        (used,) = run.inputs.dataset_inputs
        assert used.dataset.name == "pima"
        assert cell.meta["data_sha256"].startswith(used.dataset.digest)
        columns = json.loads(str(used.dataset.schema))["mlflow_colspec"]
        assert [column["name"] for column in columns] == list(cell.space.names)
        assert [tag.value for tag in used.tags] == ["test"]
        path = client.download_artifacts(run.info.run_id, "counterfactuals.json")
        table = json.loads(Path(path).read_text())
        rows = [dict(zip(table["columns"], row, strict=True)) for row in table["data"]]
        factuals = cell.factuals()[0]
        for row in rows:
            moved = [name for name in cell.space.names if row[name] != factuals.loc[row["factual"], name]]
            assert [part.split(":")[0] for part in row["changes"].split("; ") if part] == moved


@pytest.mark.parametrize("width", [1280, 400])
def test_the_report_fits(swept: Path, width: int) -> None:
    """Nothing reaches beyond the window, and something is drawn; the picture is kept."""
    done = runner(swept)("experiment=adhoc", module="harness.report")
    assert done.returncode == 0, done.stderr
    folder = swept / "results" / "adhoc"
    (folder / "frame.html").write_text(FRAME.format(width=width))
    frame = (folder / "frame.html").as_uri()
    found = re.search(r"<title>(\d+)</title>", browse(frame))
    assert found
    assert int(found[1]) <= width
    picture = swept / f"report-{width}.png"  # in its folder the next report would take it for a figure
    browse(frame, f"--screenshot={picture}", width=width + 40, height=900)
    pixels = matplotlib.image.imread(picture)
    assert len(np.unique(pixels[..., :3].reshape(-1, 3), axis=0)) > 20
