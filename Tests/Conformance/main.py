"""Tests nodes with foreign tools and clients. Each check prints rows. A missing tool fails the run, unless
ALLOW_MISSING=1 is set; then a message names the tool."""

import os
import pathlib
import sys
import tempfile
import traceback

import browser
import burst
import clients
import description
import moving
import slow
import smuggling
import sockets
from nodes import Cluster, Missing

CHECKS = {
    "description": description.check,
    "sockets": sockets.check,
    "clients": clients.check,
    "browser": browser.check,
    "slow": slow.check,
    "burst": burst.check,
    "moving": moving.check,
    "smuggling": smuggling.check,
}


def main(names):
    unknown = [name for name in names if name not in CHECKS]
    if unknown:
        sys.exit(f"there is no check {unknown[0]}; there are {', '.join(CHECKS)}")
    failed, allows_missing = [], os.environ.get("ALLOW_MISSING") == "1"
    with tempfile.TemporaryDirectory(prefix="reel-conformance-") as folder, Cluster(pathlib.Path(folder)) as cluster:
        for name in names or CHECKS:
            try:
                rows = 0
                for row in CHECKS[name](cluster):
                    rows += 1
                    print(f"  ok  {name}: {row}", flush=True)
                assert rows > 0, "nothing was checked"
            except Missing as missing:
                print(f"NOT TESTED  {name}: {missing} is not installed", flush=True)
                if not allows_missing:
                    failed.append(name)
                    print(f"FAILED  {name}: install {missing}, or say ALLOW_MISSING=1", flush=True)
            except Exception as error:
                failed.append(name)
                print(f"FAILED  {name}: {str(error) or repr(error)}", flush=True)
                if not isinstance(error, AssertionError):
                    traceback.print_exc()
        for node in cluster.nodes:
            if node.process.poll() is not None:
                failed.append(node.name)
                print(f"FAILED  {node.name} has ended: {node.journal()[-2000:]}")
    sys.exit(1 if failed else 0)


main(sys.argv[1:])
