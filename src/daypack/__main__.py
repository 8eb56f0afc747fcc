"""`python -m daypack` is the `daypack` command."""

import sys

from daypack.cli.main import run

sys.exit(run())
