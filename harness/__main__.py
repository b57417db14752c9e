"""``python -m harness``: hands over to ``run``."""

from harness.cli.main import main

if __name__ == "__main__":
    main()
