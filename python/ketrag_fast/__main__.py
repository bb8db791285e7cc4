"""The command `ketrag`, as `python -m ketrag_fast`."""

import sys

from ketrag_fast.apps.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
