#!/usr/bin/env python3
"""Runs HAProxy with deploy/haproxy.cfg in front of three small servers, and checks how clients are served.

The servers stand for gateways; `front.py gateway PORT` runs one of them. The program needs HAProxy, and Linux, where
every address in 127.0.0.0/8 is local. It prints a line for each check, and ends at the first check that fails.
"""

import contextlib
import json
import os
import pathlib
import random
import signal
import socket
import socketserver
import struct
import subprocess
import sys
import time

CONFIG = pathlib.Path(__file__).resolve().parents[2] / "deploy" / "haproxy.cfg"
SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
# The handshake in the example of RFC 6455. HAProxy checks both the request and the response.
UPGRADE = "upgrade: websocket\r\nconnection: upgrade\r\n"
ASKED = UPGRADE + "sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
ACCEPTED = UPGRADE + "sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"


class Gateway(socketserver.StreamRequestHandler):
    """A stand-in for a gateway.

    `/set/STATUS` sets the status of the answers to `/readyz`. `/socket` opens a WebSocket that echoes all bytes. The
    other paths are answered with the port of the server.
    """

    status = 200

    def handle(self):
        with contextlib.suppress(ConnectionError):
            self.answer(self.proxy_header())

    def answer(self, source):
        port = self.server.server_address[1]
        last = False
        while not last and (line := self.rfile.readline()):
            path = line.split()[1].decode()
            while (header := self.rfile.readline()) not in (b"\r\n", b""):
                last = last or header.lower() == b"connection: close\r\n"
            if path == "/socket":
                head = f"HTTP/1.1 101 Switching Protocols\r\n{ACCEPTED}x-port: {port}\r\n\r\n"
                self.wfile.write(head.encode())
                while data := self.request.recv(100):
                    self.wfile.write(data)
                return
            if path.startswith("/set/"):
                Gateway.status = int(path.removeprefix("/set/"))
            status = Gateway.status if path == "/readyz" else 200
            body = json.dumps({"port": port, "source": source}).encode()
            head = f"HTTP/1.1 {status} Answer\r\nx-port: {port}\r\ncontent-length: {len(body)}\r\n\r\n"
            self.wfile.write(head.encode() + body)

    def proxy_header(self):
        """Reads a PROXY header of version 2, and returns the client's address in it.

        Returns "local" for the header of a health check, and None if there is no header.
        """
        if self.rfile.peek(1)[:1] != b"\r":
            return None
        head = self.rfile.read(16)
        assert head[:12] == SIGNATURE, head
        rest = self.rfile.read(struct.unpack(">H", head[14:16])[0])
        return "local" if head[12] == 0x20 else socket.inet_ntoa(rest[:4])


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 100


class Answer:
    def __init__(self, text):
        head, _, self.body = text.partition("\r\n\r\n")
        lines = head.split("\r\n")
        self.status = int(lines[0].split()[1]) if text else None
        self.headers = dict(line.lower().split(": ", 1) for line in lines[1:])

    @property
    def port(self):
        return int(self.headers["x-port"])


def ask(port, path, source="127.0.0.1", headers="connection: close\r\n", keep=None):
    """Sends one request and returns the answer. Its status is None if the connection closes without an answer.

    If `keep` is a list, the connection is added to it and stays open.
    """
    connection = socket.create_connection(("127.0.0.1", port), timeout=10, source_address=(source, 0))
    connection.sendall(f"GET {path} HTTP/1.1\r\nhost: front\r\n{headers}\r\n".encode())
    if keep is not None:
        keep.append(connection)
        return Answer(connection.recv(65536).decode())
    text = b""
    with connection, contextlib.suppress(ConnectionResetError):
        while data := connection.recv(65536):
            text += data
    return Answer(text.decode())


def eventually(what, condition, seconds=10):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"{what}: not within {seconds} s"
        time.sleep(0.05)


def echoes(connection):
    connection.sendall(b"ping")
    return connection.recv(100) == b"ping"


def is_cut(connection):
    connection.settimeout(0.01)
    try:
        return connection.recv(100) == b""
    except TimeoutError:
        return False
    except ConnectionError:
        return True


def free_port():
    """Returns a free port below the range from which the kernel chooses ports for outgoing connections."""
    while True:
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", random.randrange(10_000, 32_000)))
            return probe.getsockname()[1]


def listens(port):
    with contextlib.suppress(OSError):
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
        return True
    return False


class Front:
    """An HAProxy with its three servers."""

    def __init__(self, stack, **variables):
        self.stack = stack
        self.port, self.stats, *self.gateways = [free_port() for _ in range(5)]
        self.processes = {}
        for port in self.gateways:
            self.start(port)
        addresses = {f"GATEWAY_{i + 1}": f"127.0.0.1:{port}" for i, port in enumerate(self.gateways)}
        variables |= {"FRONT": f"127.0.0.1:{self.port}", "STATS": f"127.0.0.1:{self.stats}", **addresses}
        self.run(["haproxy", "-db", "-f", CONFIG], env=os.environ | variables, stdout=subprocess.DEVNULL)
        for port in self.gateways:
            eventually("a gateway is up", lambda: self.state(port) == "UP")

    def run(self, command, **settings):
        process = subprocess.Popen(command, **settings)
        self.stack.callback(process.wait)
        self.stack.callback(process.kill)
        return process

    def start(self, port):
        self.processes[port] = self.run([sys.executable, __file__, "gateway", str(port)])
        eventually("a gateway listens", lambda: listens(port))

    def state(self, port):
        """Returns the state of a gateway as HAProxy's metrics name it, or None if there are no metrics yet."""
        if not listens(self.stats):
            return None
        server = f'server="gateway-{self.gateways.index(port) + 1}"'
        for line in ask(self.stats, "/metrics").body.split("\n"):
            if line.startswith("haproxy_server_status{") and server in line and line.endswith(" 1"):
                return line.split('state="')[1].split('"')[0]
        return None

    def served_by(self):
        answers = [ask(self.port, "/who") for _ in range(30)]
        assert all(answer.status == 200 for answer in answers), [answer.status for answer in answers]
        return {answer.port for answer in answers}

    def sockets(self, count=3):
        """Opens `count` sockets on each gateway that serves, and returns them by port.

        HAProxy chooses the gateway with the fewest connections, so the sockets must be spread equally.
        """
        opened = {port: [] for port in self.served_by()}
        while any(len(kept) < count for kept in opened.values()):
            new = []
            port = ask(self.port, "/socket", headers=ASKED, keep=new).port
            opened[port] += new
            assert len(opened[port]) <= count, "the front does not share sockets equally"
        for kept in opened.values():
            for connection in kept:
                self.stack.callback(connection.close)
        return opened


def clients_see_gateways_come_and_go(stack):
    front = Front(stack)
    first, second, third = front.gateways
    source = json.loads(ask(front.port, "/who", source="127.0.0.9").body)["source"]
    assert source == "127.0.0.9", source
    source = json.loads(ask(first, "/who").body)["source"]
    assert source is None, source
    yield "a gateway learns the client's address from the PROXY header"

    sockets = front.sockets()
    for status in (503, 404, 500):
        ask(first, f"/set/{status}")
        eventually("the front sees it", lambda: front.state(first) == "NOLB")
        began = time.monotonic()
        while time.monotonic() < began + 6:
            assert front.served_by() == {second, third}
            assert all(echoes(x) for x in sockets[first])
            time.sleep(0.2)
        ask(first, "/set/200")
        eventually("it serves again", lambda: front.served_by() == {first, second, third})
        assert all(echoes(x) for x in sockets[first])
        yield f"a gateway whose check answers {status} gets nothing new for 6 s and keeps its 3 open sockets"

    for port in front.gateways:
        ask(port, "/set/503")
    eventually("all are unready", lambda: {front.state(port) for port in front.gateways} == {"NOLB"})
    assert ask(front.port, "/who").status == 503
    assert all(echoes(x) for kept in sockets.values() for x in kept)
    for port in front.gateways:
        ask(port, "/set/200")
    eventually("all are up again", lambda: {front.state(port) for port in front.gateways} == {"UP"})
    yield "without a ready gateway the front answers 503, and open sockets stay"

    began = time.monotonic()
    front.processes[second].kill()
    assert front.served_by() == {first, third}
    eventually("the sockets are cut", lambda: all(is_cut(x) for x in sockets[second]))
    assert all(echoes(x) for x in sockets[first] + sockets[third])
    yield f"a gateway that was killed: nobody notices at the front, its sockets end after {seconds(began)}"

    ask(third, "/set/503")
    eventually("the front sees it", lambda: front.state(third) == "NOLB")
    began = time.monotonic()
    front.processes[third].send_signal(signal.SIGSTOP)
    eventually("the sockets are cut", lambda: all(is_cut(x) for x in sockets[third]))
    assert all(echoes(x) for x in sockets[first])
    took = seconds(began)
    assert front.state(third) == "DOWN" and front.served_by() == {first}
    yield f"an unready gateway that hangs: its sockets are cut after {took}"

    front.processes[third].send_signal(signal.SIGCONT)
    ask(third, "/set/200")
    eventually("it is up again", lambda: front.state(third) == "UP")
    front.start(second)
    ask(second, "/set/503")
    eventually("the front has checked it", lambda: front.state(second) == "NOLB")
    assert second not in front.served_by(), "a gateway that starts must be ready before it is asked"
    ask(second, "/set/200")
    eventually("both serve again", lambda: front.served_by() == {second, third})
    yield "gateways that come back serve again, once they are ready"


def an_address_has_its_share(stack):
    limits = {"CONNECTIONS_PER_ADDRESS": "20", "CONNECTIONS_PER_ADDRESS_HARD": "40"}
    front = Front(stack, **limits, CONNECTS_PER_ADDRESS_10S="200", REQUESTS_PER_ADDRESS_10S="300")
    one, other = "127.0.0.2", "127.0.0.3"
    opened = []
    statuses = [ask(front.port, "/socket", one, ASKED, opened).status for _ in range(20)]
    assert statuses == [101] * 20, statuses
    answer = ask(front.port, "/who", one, "")
    assert answer.status == 429 and answer.headers["retry-after"] == "10", answer.headers
    problem = json.loads(answer.body)
    assert problem["code"] == "rate_limited" and answer.headers["content-type"] == "application/problem+json"
    assert ask(front.port, "/who", other).status == 200
    yield "the 21st connection of one address is answered 429 and closed; another address is served"

    idle = [socket.create_connection(("127.0.0.1", front.port), source_address=(one, 0)) for _ in range(40)]
    eventually("those beyond 40 are closed", lambda: sum(is_cut(x) for x in idle) >= 20, seconds=3)
    for connection in opened + idle:
        connection.close()
    eventually("it is served again", lambda: ask(front.port, "/who", one).status == 200)
    yield "beyond twice the limit connections end without an answer; once they are closed the address is served again"

    kept = []
    ask(front.port, "/who", "127.0.0.4", "", kept)
    statuses = []
    while len(statuses) < 400 and statuses[-1:] != [429]:
        kept[0].sendall(b"GET /who HTTP/1.1\r\nhost: front\r\n\r\n")
        statuses.append(Answer(kept[0].recv(65536).decode()).status)
    assert len(statuses) == 300 and set(statuses[:-1]) == {200}, (len(statuses), set(statuses))
    yield "the 301st request of one address within 10 s is answered 429"

    statuses = [ask(front.port, "/who", "127.0.0.5").status for _ in range(201)]
    assert statuses == [200] * 200 + [429], statuses
    yield "so is the 201st new connection"


def the_operators_pages_are_not_for_clients(stack):
    front = Front(stack)
    for path in ("/metrics", "/metrics?x", "/%6detrics"):
        assert ask(front.port, path).status == 404, path
    assert ask(front.stats, "/metrics").status == 200
    assert ask(front.stats, "/").status != 200
    yield "clients see no metrics; without a password there is no page"

    front = Front(stack, STATS_USER="ann", STATS_PASSWORD="secret")
    assert ask(front.stats, "/").status == 401
    good, bad = "YW5uOnNlY3JldA==", "YW5uOndyb25n"
    assert ask(front.stats, "/", headers=f"authorization: Basic {bad}\r\nconnection: close\r\n").status == 401
    assert ask(front.stats, "/", headers=f"authorization: Basic {good}\r\nconnection: close\r\n").status == 200
    assert ask(front.stats, "/metrics").status == 200
    yield "with a password the page asks for it, the metrics do not"


def seconds(began):
    return f"{time.monotonic() - began:.1f} s"


def main():
    for check in (
        clients_see_gateways_come_and_go,
        an_address_has_its_share,
        the_operators_pages_are_not_for_clients,
    ):
        with contextlib.ExitStack() as stack:
            for line in check(stack):
                print(line, flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["gateway"]:
        Server(("127.0.0.1", int(sys.argv[2])), Gateway).serve_forever()
    main()
