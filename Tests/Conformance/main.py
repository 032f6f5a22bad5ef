"""Holds nodes against tools and clients that others have written. Each check is a row; a tool that is not there is
said loudly and fails nothing."""

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
    failed = []
    with tempfile.TemporaryDirectory(prefix="reel-conformance-") as folder, Cluster(pathlib.Path(folder)) as cluster:
        for name in names or CHECKS:
            try:
                for row in CHECKS[name](cluster):
                    print(f"  ok  {name}: {row}", flush=True)
            except Missing as missing:
                print(f"NOT TESTED  {name}: {missing} is not installed", flush=True)
            except Exception as error:
                failed.append(name)
                print(f"FAILED  {name}: {error}", flush=True)
                if not isinstance(error, AssertionError):
                    traceback.print_exc()
        for node in cluster.nodes:
            if node.process.poll() is not None:
                failed.append(node.name)
                print(f"FAILED  {node.name} has ended: {node.journal()[-2000:]}")
    sys.exit(1 if failed else 0)


main(sys.argv[1:])
