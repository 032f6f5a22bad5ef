"""Tests that two thousand clients of a gateway that must end move to another one, at different times. No client may get
an error, miss an event, or get an event twice."""

import asyncio
import contextlib
import json
import signal
import time
import uuid

import websockets
from nodes import eventually, free_port

CLIENTS = 2_000


class Move:
    """The clients of one gateway, and a client of the other gateway that publishes during the move."""

    def __init__(self, leaving, other):
        self.leaving, self.other = leaving, other
        self.published, self.is_over = 0, False
        self.subscribed, self.moved = 0, 0
        self.last = None
        # The number of concurrent handshakes; a client in Python is slow.
        self.doors = asyncio.Semaphore(100)

    def connect(self, node):
        uri = f"ws://{node.address}/v1/socket"
        return websockets.connect(uri, subprotocols=["reel.v1"], max_size=None, ping_interval=None, open_timeout=60)

    async def run(self):
        follow = [asyncio.create_task(self.follow()) for _ in range(CLIENTS)]
        publish = asyncio.create_task(self.publish())
        watch = asyncio.create_task(self.watch())
        await asyncio.gather(watch, publish, *follow)

    async def watch(self):
        while self.subscribed < CLIENTS:
            await asyncio.sleep(0.05)
        self.leaving.process.send_signal(signal.SIGTERM)
        while self.leaving.process.poll() is None or self.moved < CLIENTS:
            await asyncio.sleep(0.05)
        self.is_over = True

    async def publish(self):
        """Publishes two events a second, and one more when all clients have moved."""
        event = {"type": "insert", "site": str(uuid.uuid4()), "model": "m", "id": "1"}
        async with self.connect(self.other) as socket:
            await socket.send('{"t":"hello","client":"moving/1"}')
            is_last = False
            while not is_last:
                is_last = self.is_over
                if is_last:
                    self.last = self.published
                text = {"t": "publish", "stream": "moving", "events": [{**event, "op": self.published}]}
                await socket.send(json.dumps(text))
                while json.loads(await socket.recv())["t"] != "ack":
                    pass
                self.published += 1
                await asyncio.sleep(0.5)

    async def follow(self):
        place = {"after": -1}
        ops = 0
        for node in (self.leaving, self.other):
            async with self.doors:
                socket = await self.connect(node)
                await socket.send('{"t":"hello","client":"moving/1"}')
                await socket.send(json.dumps({"t": "subscribe", "stream": "moving", **place}))
            goes = False
            while text := await hear(socket):
                frame = json.loads(text)
                kind = frame["t"]
                if kind == "subscribed":
                    self.subscribed += node is self.leaving
                    self.moved += node is self.other
                    place["epoch"] = frame["epoch"]
                elif kind == "events":
                    assert frame["from"] == place["after"] + 1, (frame, place)
                    for event in frame["events"]:
                        assert event["op"] == ops, (event, ops)
                        ops += 1
                    place["after"] = frame["to"]
                elif kind == "upto":
                    place["after"] = max(place["after"], frame["seq"])
                elif kind == "goaway":
                    assert frame["nodes"] == [f"http://{self.other.address}"], frame
                    goes = True
                else:
                    assert kind == "welcome", frame
                if ops - 1 == self.last:
                    return await socket.close()
            assert goes and socket.close_code == 1012, (goes, socket.close_code, socket.close_reason)


async def hear(socket):
    """Returns the next frame, or None at the end of the connection."""
    with contextlib.suppress(websockets.ConnectionClosed):
        return await socket.recv()


def check(cluster):
    log, port = f"sqlite:{cluster.folder}/moving.sqlite", free_port()
    other = cluster.start("other", "gateway", "--log", log, "--advertise", f"http://127.0.0.1:{port}", port=port)
    leaving = cluster.start("leaving", "gateway", "--log", log)
    eventually("each knows the other", lambda: other.address.encode() in leaving.ask("GET", "/v1/cluster")[2])
    start = time.monotonic()
    move = Move(leaving, other)
    asyncio.run(asyncio.wait_for(move.run(), 120))
    assert cluster.stop(leaving) == 0 and cluster.stop(other) == 0
    assert 'reason="all have left"' in leaving.journal(), leaving.journal()[-1000:]
    seconds = time.monotonic() - start
    yield f"{CLIENTS} clients moved while {move.published} events came, without an error, in {seconds:.0f} s"

