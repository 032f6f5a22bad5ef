"""Tests a burst of ten thousand clients on a node that has too few connections, descriptors, or too little memory. A
refused client gets an answer, and connected clients miss no event. After the burst the node accepts clients again,
without a restart."""

import asyncio
import collections
import contextlib
import json
import resource
import select
import socket
import struct
import threading
import time
import uuid

import websockets
from nodes import eventually

CROWD, INSIDE = 10_000, 100
HANDSHAKE = (
    "GET /v1/socket HTTP/1.1\r\nHost: {address}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: reel.v1\r\n\r\n"
)


class Crowd:
    """Connections that begin at the same time. Each requests a WebSocket and stays open."""

    def __init__(self, node, count):
        self.epoll = select.epoll()
        self.sockets, self.heard, self.fates = {}, {}, collections.Counter()
        self.request = HANDSHAKE.format(address=node.address).encode()
        for _ in range(count):
            connection = socket.socket()
            connection.setblocking(False)
            # A reset at the end frees the port immediately.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.connect_ex((node.host, node.port))
            self.sockets[connection.fileno()] = connection
            self.epoll.register(connection, select.EPOLLOUT)

    def listen(self, is_enough, seconds=60):
        """Sends and reads on all connections until `is_enough` accepts the counts of results."""
        end = time.monotonic() + seconds
        while not is_enough(self.fates):
            assert time.monotonic() < end, f"only {dict(self.fates)} of {len(self.sockets)} after {seconds} s"
            for number, events in self.epoll.poll(0.05):
                self.step(number, events)
        return self.fates

    def step(self, number, events):
        connection = self.sockets[number]
        try:
            if number not in self.heard:
                self.heard[number] = b""
                connection.send(self.request)
                self.epoll.modify(number, select.EPOLLIN)
                return
            data = connection.recv(4096)
        except BlockingIOError:
            return
        except ConnectionError:
            data = b""
        self.heard[number] += data
        head = self.heard[number]
        if head.startswith(b"HTTP/1.1 101 ") and b"\r\n\r\n" in head:
            self.end(number, "taken")
        elif not data:
            told = head.startswith(b"HTTP/1.1 503 ") and b'"code":"overloaded"' in head
            self.end(number, "told" if told and b"retry-after:" in head.lower() else "dropped")

    def end(self, number, fate):
        self.fates[fate] += 1
        self.epoll.unregister(number)

    def leave(self):
        for connection in self.sockets.values():
            connection.close()
        self.epoll.close()


class Inside:
    """Clients that are connected before the burst. All but one are subscribed, and one publishes continuously."""

    def __init__(self, node, publishes=True):
        self.node, self.publishes = node, publishes
        self.published, self.heard, self.is_over = 0, [0] * INSIDE, False
        self.are_there = threading.Event()
        self.failure = None
        self.thread = threading.Thread(target=self.run, daemon=True)

    def run(self):
        try:
            asyncio.run(self.live())
        except Exception as error:
            self.failure = repr(error)
        self.are_there.set()

    async def live(self):
        async with contextlib.AsyncExitStack() as stack:
            clients = [await stack.enter_async_context(self.connect()) for _ in range(INSIDE + 1)]
            for client in clients:
                await client.send('{"t":"hello","client":"inside/1"}')
            for client in clients[1:]:
                await client.send('{"t":"subscribe","stream":"burst","after":-1}')
                await self.hear(client, "subscribed")
            self.are_there.set()
            await asyncio.gather(self.publish(clients[0]), *map(self.follow, range(INSIDE), clients[1:]))

    def connect(self):
        uri = f"ws://{self.node.address}/v1/socket"
        return websockets.connect(uri, subprotocols=["reel.v1"], max_size=None, ping_interval=None)

    async def hear(self, client, *kinds):
        while True:
            frame = json.loads(await asyncio.wait_for(client.recv(), 60))
            if frame["t"] in kinds:
                return frame

    async def publish(self, client):
        """Publishes each event once the previous one is acked. After a nack it sends the same event again.

        At least one event is published after the end, because a subscriber that waits for a frame notices the end only
        after the next event."""
        site = str(uuid.uuid4())
        event = {"type": "insert", "site": site, "model": "m", "id": "1"}
        is_last = False
        while not is_last:
            is_over = self.is_over
            text = {"t": "publish", "stream": "burst", "events": [{**event, "op": self.published}]}
            await client.send(json.dumps(text))
            frame = await self.hear(client, "ack", "nack")
            if frame["t"] == "ack":
                self.published += 1
                is_last = is_over
            else:
                assert frame["code"] == "overloaded", frame
            await asyncio.sleep(0.01)
        self.count = self.published

    async def follow(self, place, client):
        ops, proven = 0, -1
        while not (self.is_over and ops >= self.published):
            frame = await self.hear(client, "events", "upto", "error", "lagged")
            if frame["t"] == "upto":
                continue
            assert frame["t"] == "events", frame
            for event in frame["events"]:
                assert event["op"] == ops and event["seq"] > proven, (event, ops, proven)
                ops, proven = ops + 1, event["seq"]
            self.heard[place] = ops

    def __enter__(self):
        self.thread.start()
        assert self.are_there.wait(60) and self.failure is None, repr(self.failure)
        return self

    def have_heard(self, more):
        """Waits until every subscriber has received `more` events after those published by now."""
        goal = self.published + more
        eventually(f"{goal} events inside", lambda: self.failure or min(self.heard) >= goal)
        assert self.failure is None, repr(self.failure)

    def __exit__(self, *_):
        self.is_over = True
        self.thread.join(60)
        if self.thread.is_alive():
            self.failure = self.failure or "the clients have not ended after 60 s"


@contextlib.contextmanager
def crowded(cluster, name, *words, descriptors=None):
    """Gives a burst a node with connected clients. Later the node must accept new clients and serve the others."""
    log = f"sqlite:{cluster.folder}/{name}.sqlite"
    node = cluster.start(name, "gateway", "--log", log, *words, descriptors=descriptors)
    with Inside(node) as inside:
        inside.have_heard(5)
        yield node, inside
        eventually("it takes others again", lambda: takes_others(node))
        inside.have_heard(5)
    assert inside.failure is None, repr(inside.failure)


def takes_others(node):
    with contextlib.suppress(OSError):
        one = Crowd(node, 1)
        try:
            return one.listen(lambda fates: fates.total() == 1).get("taken")
        finally:
            one.leave()


def no_room(cluster):
    with crowded(cluster, "room", "--connections-max", "1000") as (node, inside):
        resident = node.metric("reel_node_resident_bytes")
        crowd = Crowd(node, CROWD)
        fates = crowd.listen(lambda fates: fates.total() == CROWD)
        inside.have_heard(5)
        crowd.leave()
    assert fates["dropped"] == 0 and 500 < fates["taken"] < 1_000, fates
    refused = node.metric('reel_node_refused_connections_total{limit="connections"}')
    assert refused >= fates["told"], (refused, fates)
    assert cluster.stop(node) == 0
    return fates, resident


def no_descriptors(cluster):
    """Connections without a descriptor wait in the kernel of the node, or in that of the client."""
    with crowded(cluster, "descriptors", descriptors=1_000) as (node, inside):
        crowd = Crowd(node, CROWD)
        fates = crowd.listen(lambda fates: fates["taken"] >= 700)
        inside.have_heard(5)
        crowd.leave()
    assert fates["dropped"] == 0 and fates["told"] == 0, fates
    assert node.metric("reel_node_descriptor_shortages_total") > 0
    assert cluster.stop(node) == 0
    return fates


def no_memory(cluster, resident):
    """Half of the clients bring the memory to its limit. The node checks it once a second; then the others come."""
    with crowded(cluster, "memory", "--memory-max-bytes", str(resident + (2 << 20))) as (node, inside):
        first = Crowd(node, CROWD // 2)
        taken = first.listen(lambda fates: fates.total() == CROWD // 2)
        eventually("it is noticed", lambda: "the memory limit is reached" in node.journal())
        second = Crowd(node, CROWD // 2)
        told = second.listen(lambda fates: fates.total() == CROWD // 2)
        first.leave()
        second.leave()
    assert taken["dropped"] == told["dropped"] == 0 and told["taken"] == 0, (taken, told)
    assert node.metric('reel_node_refused_connections_total{limit="memory"}') >= told["told"]
    assert cluster.stop(node) == 0
    return taken + told


def check(cluster):
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    assert limit >= CROWD + 1_000, f"ulimit -Hn is {limit}"
    fates, resident = no_room(cluster)
    yield row("no room", fates)
    yield row("no descriptors", no_descriptors(cluster))
    yield row("no memory", no_memory(cluster, resident))


def row(what, fates):
    told = f"{fates['told']} told to come again" if fates["told"] else "the others wait"
    return f"{what}: of {CROWD} at once {fates['taken']} are taken, {told}, none dropped, {INSIDE} inside unharmed"
