"""Raw files, and the datasets made of them. The one place that reads data from outside."""

from harness.data.csv_load import load_csv
from harness.data.dataset import Dataset
from harness.data.load import load_dataset, parse_target
from harness.data.sources import Source, data_folder, fetch, read_bytes

__all__ = ["Dataset", "Source", "data_folder", "fetch", "load_csv", "load_dataset", "parse_target", "read_bytes"]
