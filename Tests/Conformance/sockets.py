"""Runs the WebSocket cases of kosoku on `/debug/echo`: with and without permessage-deflate, plain and over TLS."""

import asyncio
import fnmatch
import socket
import subprocess

import kosoku
import kosoku.cases
from nodes import eventually, free_port, tool

# These cases request a smaller window of the server. The node declines that, so there is nothing to test.
NOT_APPLICABLE = ["13.3.*", "13.5.*"]
DEFLATE = ["12.*", "13.*"]


def give_bytes():
    """Works around an error of kosoku 0.1.0, so that its cases get bytes. A server may send a message uncompressed if
    compression does not make it smaller. kosoku passes such a message to these cases as a `str` with one letter per
    byte. They hash it, and Python hashes only bytes. So with any server each case ends in ERROR, "Strings must be
    encoded before hashing"."""

    def in_bytes(received):
        return lambda case, message, binary: received(
            case, message.encode("latin-1") if isinstance(message, str) else message, binary
        )

    for name, case in kosoku.cases.CASES.items():
        if name.startswith(("12.", "13.")):
            case.onMessage = in_bytes(case.onMessage)


def run(address, concurrency, **which):
    async def results():
        try:
            return await kosoku.run_fuzzingclient(f"ws://{address}/debug/echo", concurrency=concurrency, **which)
        except kosoku.FailureError as failure:
            return failure.results

    return asyncio.run(results())


def met_own_timer(case):
    """Returns True if kosoku's own timer ended the case. It allows one second for a handshake, which is too short on a
    busy machine, whatever the node does."""
    return case.was_close_handshake_timeout or case.was_server_connection_drop_timeout or case.was_open_handshake_timeout


def cases(kind, address, count, without):
    """Runs all cases except `without`, and checks that there are `count`. A case that kosoku's own timer has ended runs
    once more, alone. Any other failure is a fault of the node. A case without a strict pass, or with nothing to test,
    has not passed."""
    excluded = [*NOT_APPLICABLE, *without]
    meant = {name for name in kosoku.cases.CASES if not any(fnmatch.fnmatch(name, some) for some in excluded)}
    assert len(meant) == count, f"{kind}: kosoku has {len(meant)} cases, expected are {count}"
    results = run(address, 2, exclude_cases=excluded)
    late = [case.case_id for case in results if not case.passed and met_own_timer(case)]
    if late:
        results = [case for case in results if case.case_id not in late] + run(address, 1, cases=late)
    failed = [case for case in results if not case.passed]
    assert not failed, f"{kind}: " + "; ".join(told(case) for case in failed)
    ran = sorted(case.case_id for case in results)
    assert ran == sorted(meant), f"{kind}: these cases ran not once: {meant.symmetric_difference(ran) or ran}"
    row = f"{kind}: kosoku found no fault in {len(results)} cases"
    if late:
        row += f", {', '.join(late)} at the second go: its timer had passed"
    return row


def told(case):
    """Returns the text of a failed case, with the last entries of its wire log."""
    return f"{case.case_id}: {case.result} {case.result_close} {case.was_not_clean_reason} {case.wirelog[-12:]}"


class Unsealed:
    """HAProxy as a plain port before a node with TLS, because kosoku does not support TLS."""

    CONFIG = """
global
    maxconn 100
defaults
    mode tcp
    timeout connect 10s
    timeout client 100s
    timeout server 100s
listen unsealed
    bind 127.0.0.1:{port}
    server node {address} ssl verify required ca-file {certificate}
"""

    def __init__(self, folder, node, certificate):
        haproxy = tool("haproxy")
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        file = folder / "unsealed.cfg"
        file.write_text(self.CONFIG.format(port=self.port, address=node.address, certificate=certificate))
        self.process = subprocess.Popen([haproxy, "-f", file, "-db"], stdout=subprocess.DEVNULL)

    def __enter__(self):
        eventually("the proxy listens", self.listens)
        return self.address

    def listens(self):
        try:
            socket.create_connection(("127.0.0.1", self.port)).close()
            return True
        except ConnectionError:
            assert self.process.poll() is None, "haproxy does not start"
            return False

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


def check(cluster):
    give_bytes()
    yield cases("plain", cluster.gateway.address, 481, [])
    echo = ["gateway", "--debug-echo", "--log"]
    node = cluster.start("no-deflate", *echo, f"sqlite:{cluster.folder}/no-deflate.sqlite", "--no-compression")
    yield cases("without deflate", node.address, 301, DEFLATE)
    assert cluster.stop(node) == 0
    certificate, key = cluster.certificate()
    sealed = ["--tls-cert", certificate, "--tls-key", key]
    node = cluster.start("tls", *echo, f"sqlite:{cluster.folder}/tls.sqlite", *sealed)
    with Unsealed(cluster.folder, node, certificate) as address:
        # Compression does not depend on TLS, so its cases run only without TLS.
        yield cases("by TLS", address, 301, DEFLATE)
    assert cluster.stop(node) == 0
