"""``python -m harness``: hands over to ``harness.cli.main``."""

from harness.cli.main import main

if __name__ == "__main__":
    main()
