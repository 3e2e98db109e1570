#!/usr/bin/env python3
"""Runs every chain with both versions of the protocol and says what did not work in which."""

import argparse
import pathlib
import sys
import tempfile

import chains
import checks

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", default=ROOT / "target/debug", type=pathlib.Path,
                        help="folder of greenroom and pass-through-proxy (default: target/debug)")
    parser.add_argument("--only", help="chains whose name contains this text")
    parser.add_argument("--version", type=int, choices=(1, 2), help="one version of the protocol instead of both")
    parser.add_argument("--released", action="store_true", help="also show what released programs do among themselves")
    options = parser.parse_args()
    peers = [HERE / f"peers-{generation}/target/debug" for generation in (3, 5)]
    needed = [options.bin / "greenroom", options.bin / "pass-through-proxy", *[peer / "conductor" for peer in peers]]
    for program in needed:
        if not program.exists():
            sys.exit(f"{program} is not there: build it first, see README.md")
    judged = [(chain, True) for chain in chains.OURS]
    if options.released:
        judged = [(chain, False) for chain in chains.RELEASED] + judged
    passed = failed = 0
    with tempfile.TemporaryFile() as log:
        for version in [options.version] if options.version else [1, 2]:
            programs = chains.Programs(
                str(options.bin.resolve() / "greenroom"), str(options.bin.resolve() / "pass-through-proxy"),
                peers[0], peers[1], [sys.executable, str(HERE / "agent.py")], version)
            for chain, counts in judged:
                name = chains.name(chain)
                if options.only and options.only not in name:
                    continue
                faults = checks.run(programs.command(chain), version, log)
                limits = chains.limits(chain)
                known = {check: limits[check] for check in faults if check in limits and counts}
                faults = {check: fault for check, fault in faults.items() if check not in known}
                total = len(checks.CONVERSATION) + len(checks.ALONE) - len(known)
                label = "ok  " if not faults else "FAIL" if counts else "n/a "
                print(f"{label} v{version} {name}" + (f" ({total} checks)" if not faults else ""), flush=True)
                for check, fault in [*known.items(), *faults.items()]:
                    print(f"       {check}: {fault}", flush=True)
                if counts:
                    passed, failed = passed + (not faults), failed + bool(faults)
    print(f"{passed} chains passed, {failed} failed")
    return failed != 0 or passed == 0


if __name__ == "__main__":
    sys.exit(main())
