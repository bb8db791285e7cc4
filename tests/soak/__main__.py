"""The whole attack, and its report."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.soak import drive

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="of all that is left to chance")
    parser.add_argument("--only", default=",".join(drive.PARTS), help=f"of {', '.join(drive.PARTS)}")
    parser.add_argument("--scale", type=float, default=1.0, help="the part of the attempts that is made")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--log", type=Path, help="one line for each attempt")
    args = parser.parse_args()
    if args.worker:
        drive.work(args.worker, args.seed, args.scale)
        sys.exit(0)
    outcomes, missing = drive.all_of(args.only.split(","), args.seed, args.scale, args.processes, args.log)
    print(drive.report(outcomes, missing))
    sys.exit(1 if drive.faults(outcomes) else 0)
