"""Other libraries to measure against, one file each; every one is an optional extra, imported where it is used."""
