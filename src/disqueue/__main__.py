"""`python -m disqueue`."""

import sys

from disqueue.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
