"""Tests with foreign clients: curl, Python's websockets, and a socket that pipelines."""

import asyncio
import json
import re
import socket
import subprocess
import tempfile

import websockets
from nodes import eventually, tool

PATH = "/v1/streams/clients/events"


def check(cluster):
    curl = tool("curl")
    for row in as_clients(cluster.gateway, [curl]):
        yield row
    guarded, _ = cluster.guarded()
    for row in as_clients(guarded, [curl, "-H", f"Authorization: Bearer {guarded.token}"]):
        yield f"with a token {row}"
    yield from refused(cluster, guarded, curl)


def as_clients(node, curl):
    """Runs the checks of one client. `curl` is the program with the options of every call."""
    url = f"http://{node.address}{PATH}"
    yield from long_poll(node, curl, url)
    yield from event_stream(node, curl, url)
    yield from cached(node, curl)
    yield from pipelined(node)
    asyncio.run(subscribed(node))
    yield "websockets subscribes, publishes, and is told all of it in order"


def refused(cluster, node, curl):
    """Checks that requests beyond the rights of a token, and requests without a valid token, are refused."""

    def status(token, target, *words):
        bearer = ["-H", f"Authorization: Bearer {token}"] if token else []
        words = [curl, "-sS", "-o", "/dev/null", "-w", "%{http_code}", *bearer, *words]
        words.append(f"http://{node.address}{target}")
        return int(subprocess.run(words, check=True, capture_output=True, text=True).stdout)

    other, short = cluster.make_token("other"), cluster.make_token("*", 1)
    head, events = "/v1/streams/clients/head", ["-H", "Accept: text/event-stream"]
    post = ["-H", "Content-Type: application/json", "-d", "{}"]
    eventually("a token of a second has expired", lambda: status(short, head) == 401)
    for token in (None, "x.y.z", node.token[:-10], short):
        found = [status(token, head), status(token, PATH, *events), status(token, PATH, *post)]
        assert found == [401] * 3, (token, found)
        assert asyncio.run(closed(node, {"token": token} if token else {})) == 4401
    found = [status(other, head), status(other, PATH, *events), status(other, PATH, *post)]
    assert found == [403] * 3, found
    assert status(other, "/v1/streams/other/head") == 200
    yield "who has no token, a wrong one, an old one, or one of another stream is refused, by HTTP and on the socket"


async def closed(node, token):
    """Returns the code with which the node closes a socket whose `hello` has this token."""
    uri = f"ws://{node.address}/v1/socket"
    async with websockets.connect(uri, subprotocols=["reel.v1"]) as client:
        await client.send(json.dumps({"t": "hello", "client": "python/1", **token}))
        try:
            while True:
                frame = json.loads(await asyncio.wait_for(client.recv(), 60))
                assert frame["t"] == "error" and frame["code"] == "unauthorized", frame
        except websockets.ConnectionClosed:
            return client.close_code


def long_poll(node, curl, url):
    head = node.get("/v1/streams/clients/head")["head"]
    poll = subprocess.Popen([*curl, "-sS", "--fail", f"{url}?after={head}&wait=30"], stdout=subprocess.PIPE)
    eventually("the poll waits", lambda: node.metric("reel_gateway_http_subscribers") == 1)
    assert poll.poll() is None
    seqs = node.publish("clients")
    answer = json.loads(poll.communicate(timeout=60)[0])
    assert poll.returncode == 0 and [event["seq"] for event in answer["events"]] == seqs, answer
    assert answer["from"] == head + 1 and answer["to"] >= seqs[-1], answer
    yield "curl's long poll is answered by the next event"


def event_stream(node, curl, url):
    with tempfile.TemporaryFile("w+") as output:

        def begin(*words):
            output.seek(0)
            output.truncate()
            words = [*curl, "-sSN", "--fail", "-H", "Accept: text/event-stream", *words, url]
            return subprocess.Popen(words, stdout=output)

        def messages():
            output.seek(0)
            blocks = [block.splitlines() for block in output.read().split("\n\n") if block.startswith("id: ")]
            return [(block[0][4:], json.loads(block[1][6:])) for block in blocks if len(block) == 2]

        def seqs():
            return [event["seq"] for _, answer in messages() for event in answer["events"]]

        first = begin()
        eventually("the first message", lambda: messages())
        more = node.publish("clients", 3)
        eventually("three events", lambda: seqs()[-3:] == more)
        last = messages()[-1][0]
        first.terminate()
        first.wait()
        missed = node.publish("clients", 2)
        second = begin("-H", f"Last-Event-ID: {last}")
        eventually("what was missed", lambda: seqs() == missed)
        second.terminate()
        second.wait()
    yield "curl's event stream comes back with its last id and misses nothing"


def cached(node, curl):
    base = f"http://{node.address}/v1/streams/clients"
    epoch = node.get("/v1/streams/clients/head")["epoch"]
    seq = node.publish("clients", 100)[-1]
    snapshot = f"{base}/snapshot?epoch={epoch}&min_seq={seq}"
    with tempfile.NamedTemporaryFile() as etag, tempfile.NamedTemporaryFile() as body:

        def ask(*words):
            words = [*curl, "-sS", "-o", body.name, "-w", "%{http_code} %{size_download}", *words]
            return subprocess.run(words, check=True, capture_output=True, text=True).stdout.split()

        status, size = ask("--etag-save", etag.name, snapshot)
        assert status == "200", status
        plain = open(body.name, "rb").read()
        assert ask("--etag-compare", etag.name, snapshot) == ["304", "0"]
        status, packed = ask("--compressed", snapshot)
        assert status == "200" and int(packed) < int(size) / 2, (status, packed, size)
        assert open(body.name, "rb").read() == plain
        yield f"curl holds a snapshot by its ETag, and unpacks one of {packed} bytes to {size}"
        connects = subprocess.run(
            [*curl, "-sS", "-o", body.name, f"{base}/head", "-o", body.name, f"{base}/head", "-w", "%{num_connects} "],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        assert connects == "1 0 ", connects
        yield "curl's second request uses the connection of the first"


def pipelined(node):
    """Sends many requests in one write. The node must answer each, in order."""
    count = 50
    requests = b""
    fields = "".join(f"{name}: {value}\r\n" for name, value in node.headers.items())
    for number in range(count):
        path = "/v1/streams/clients/head" if number % 2 else f"/nowhere/{number}"
        requests += f"GET {path} HTTP/1.1\r\nHost: {node.address}\r\n{fields}\r\n".encode()
    requests += f"GET /healthz HTTP/1.1\r\nHost: {node.address}\r\nConnection: close\r\n\r\n".encode()
    with socket.create_connection((node.host, node.port), timeout=60) as connection:
        connection.sendall(requests)
        answer = b""
        while data := connection.recv(1 << 16):
            answer += data
    statuses = re.findall(rb"HTTP/1\.1 (\d{3}) ", answer)
    assert statuses == [b"404", b"200"] * (count // 2) + [b"200"], statuses
    yield f"{count + 1} requests in one write are answered in their order"


async def subscribed(node):
    uri = f"ws://{node.address}/v1/socket"
    async with websockets.connect(uri, subprotocols=["reel.v1"], max_size=None) as client:

        async def hear(kind):
            while True:
                frame = json.loads(await asyncio.wait_for(client.recv(), 60))
                if frame["t"] == kind:
                    return frame

        await client.send(node.hello)
        await hear("welcome")
        await client.send(json.dumps({"t": "subscribe", "stream": "clients", "after": "now"}))
        proven = (await hear("subscribed"))["after"]
        seqs = await asyncio.to_thread(node.publish, "clients", 20)
        found = []
        while len(found) < 20:
            frame = await hear("events")
            assert frame["from"] == proven + 1, frame
            proven = frame["to"]
            found += [event["seq"] for event in frame["events"]]
        assert found == seqs, found
