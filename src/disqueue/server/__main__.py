"""`python -m disqueue.server`."""

import sys

from disqueue.server.main import run

sys.exit(run(sys.argv[1:]))
