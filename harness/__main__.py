"""``python -m harness``: hands over to ``run``."""

from harness.run import main

if __name__ == "__main__":
    main()
