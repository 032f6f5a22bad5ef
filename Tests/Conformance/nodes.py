"""Nodes as processes for the checks. Each has a free port of the loopback and a folder that is removed at the end."""

import http.client
import json
import os
import pathlib
import resource
import shutil
import socket
import subprocess
import time
import uuid

REEL = str(pathlib.Path(os.environ["REEL"]).resolve())


class Missing(Exception):
    """A tool that a check needs is not installed."""


def tool(name):
    path = shutil.which(name)
    if path is None:
        raise Missing(name)
    return path


def eventually(what, is_true, seconds=100):
    end = time.monotonic() + seconds
    while True:
        found = is_true()
        if found:
            return found
        assert time.monotonic() < end, f"never came: {what}"
        time.sleep(0.02)


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def reel(*words):
    """Runs the program and returns its output."""
    return subprocess.run([REEL, *words], check=True, capture_output=True, text=True).stdout


class Node:
    """A node that has printed its address. Requests carry the token, if one is given."""

    def __init__(self, name, folder, *words, descriptors=None, port=0, token=None):
        self.name, self.role, self.token = name, words[0], token
        self.file = folder / f"{name}.log"
        limit = descriptors and (lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors)))
        self.process = subprocess.Popen(
            [REEL, *words, "--listen", f"127.0.0.1:{port}"],
            stdout=subprocess.PIPE,
            stderr=self.file.open("w"),
            text=True,
            preexec_fn=limit,
        )
        line = self.process.stdout.readline()
        assert line.startswith("listening on "), f"{name} said {line!r}; {self.journal()[-2000:]}"
        self.host, port = line.split()[-1].rsplit(":", 1)
        self.port = int(port)

    @property
    def address(self):
        return f"{self.host}:{self.port}"

    @property
    def headers(self):
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}

    @property
    def hello(self):
        """The first frame of a socket."""
        return json.dumps({"t": "hello", "client": "python/1", **({"token": self.token} if self.token else {})})

    def journal(self):
        return self.file.read_text()

    def end(self):
        self.process.terminate()
        return self.process.wait(30)

    def ask(self, method, target, body=None, headers=None):
        connection = http.client.HTTPConnection(self.host, self.port, timeout=60)
        try:
            body = body if body is None else json.dumps(body)
            connection.request(method, target, body=body, headers={**self.headers, **(headers or {})})
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def get(self, target):
        status, _, body = self.ask("GET", target)
        assert status == 200, (target, status, body)
        return json.loads(body)

    def metric(self, name):
        """Returns the value of a metric, whose name includes its labels; 0 if there is none."""
        for line in self.ask("GET", "/metrics")[2].decode().splitlines():
            if line.startswith(name + " "):
                return int(line.split()[-1])
        return 0

    def publish(self, stream, count=1):
        """Inserts `count` objects as a new site, and returns the seqs of their events."""
        site = str(uuid.uuid4())
        events = [
            {"type": "insert", "site": site, "op": op, "model": "task", "id": f"{site}-{op}", "fields": {"n": op}}
            for op in range(count)
        ]
        status, _, body = self.ask("POST", f"/v1/streams/{stream}/events", {"events": events})
        assert status == 200, (status, body)
        return [ack["seq"] for ack in json.loads(body)["acks"]]


class Cluster:
    """A gateway and a snapshot node on one log. On request there are two more, which require tokens."""

    def __init__(self, folder):
        self.folder = folder
        self.nodes = []
        self.guards = None

    def __enter__(self):
        try:
            self.gateway, self.snapshot = self.pair("", ["--debug-echo"], [])
            return self
        except BaseException:
            self.__exit__()
            raise

    def pair(self, prefix, gateways, both, **more):
        """Starts a gateway and a snapshot node on a new log, and waits until the gateway knows the snapshot node."""
        words = ["--log", f"sqlite:{self.folder}/{prefix}log.sqlite", *both]
        gateway = self.start(f"{prefix}gateway", "gateway", *words, *gateways, **more)
        data = str(self.folder / f"{prefix}snapshot")
        snapshot = self.start(f"{prefix}snapshot", "snapshot", *words, "--data", data, **more)
        for node in (gateway, snapshot):
            eventually(f"{node.name} is ready", lambda: node.ask("GET", "/readyz")[0] == 200)
        knows = lambda: b'"snapshot"' in gateway.ask("GET", "/v1/cluster")[2]
        eventually(f"{gateway.name} knows the snapshot node", knows)
        return gateway, snapshot

    def guarded(self):
        """Returns two nodes that refuse requests without a token. Their own requests carry a token with all rights."""
        if self.guards is None:
            keys, public = self.folder / "keys.json", self.folder / "public.json"
            keys.write_text(reel("token", "keygen"))
            public.write_text(reel("token", "keygen", "--public", str(keys)))
            self.guards = self.pair("guarded-", ["--debug-echo"], ["--jwks", str(public)], token=self.make_token())
        return self.guards

    def make_token(self, pattern="*", seconds=3_600):
        """Returns a token of the guarded nodes, for these streams."""
        words = ["token", "issue", "--jwks", str(self.folder / "keys.json"), "--sub", "conformance"]
        if pattern == "*":
            # Only operators may list the nodes.
            words += ["--admin", "*"]
        return reel(*words, "--read", pattern, "--publish", pattern, "--for", str(seconds)).strip()

    def start(self, name, *words, **more):
        node = Node(name, self.folder, *words, **more)
        self.nodes.append(node)
        return node

    def stop(self, node):
        self.nodes.remove(node)
        return node.end()

    def certificate(self):
        """Returns the files of a certificate for 127.0.0.1 and of its key."""
        certificate, key = self.folder / "cert.pem", self.folder / "key.pem"
        if not key.exists():
            subprocess.run(
                [tool("openssl"), "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
                + ["-keyout", key, "-out", certificate, "-days", "2", "-subj", "/CN=localhost"]
                + ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"],
                check=True,
                capture_output=True,
            )
        return certificate, key

    def __exit__(self, *_):
        for node in self.nodes:
            node.end()
