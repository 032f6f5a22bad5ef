"""Tests clients that send and read as slowly as possible (slowhttptest). A deadline must end each of them, and other
clients must not be disturbed."""

import json
import re
import subprocess
import threading
import time
import uuid

from nodes import tool

CONNECTIONS = 200


def check(cluster):
    slowhttptest, log = tool("slowhttptest"), f"sqlite:{cluster.folder}/slow.sqlite"
    node = cluster.start("slow", "gateway", "--log", log, "--partitions", "1")
    # The block that is read slowly has 20 MB, which is more than the kernels buffer.
    site, each = str(uuid.uuid4()), 32
    for op in range(0, 1_024, each):
        events = [
            {"type": "insert", "site": site, "op": op + n, "model": "m", "id": f"{op + n}", "fields": {"t": "x" * 20_000}}
            for n in range(each)
        ]
        status, _, body = node.ask("POST", "/v1/streams/large/events", {"events": events})
        assert status == 200, body
    block = f"/v1/streams/large/blocks/{node.get('/v1/streams/large/head')['epoch']}/0"
    base = f"http://{node.address}"
    kinds = {
        # The options, the target, and the deadline in seconds. A closed reader first reads what it has buffered.
        "heads": (["-H"], "/v1/streams/slow/head", 10),
        "bodies": (["-B", "-s", "8192", "-f", "application/json"], "/v1/streams/slow/events", 30),
        "readers": (["-X", "-w", "10", "-y", "20", "-n", "1", "-z", "32"], block, 120),
    }
    runs = {}
    for kind, (words, target, deadline) in kinds.items():
        count = CONNECTIONS if kind != "readers" else CONNECTIONS // 4
        words = [slowhttptest, *words, "-c", str(count), "-r", str(CONNECTIONS), "-i", "2", "-p", "5"]
        words += ["-l", str(deadline + 60), "-u", base + target]
        runs[kind] = (subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True), deadline)
    good = Good(node)
    good.start()
    ends = {}
    for kind, (run, deadline) in sorted(runs.items(), key=lambda item: item[1][1]):
        output = re.sub(r"\x1b\[[0-9;]*m", "", run.communicate(timeout=deadline + 120)[0])
        found = re.search(r"Exit status:\s*(.*)", output)
        ends[kind] = found.group(1).strip() if found else output[-500:]
        assert "No open connections left" in ends[kind], f"{kind}: {ends[kind]}"
        assert "service available:   NO" not in output, output[-1500:]
    good.stop()
    yield f"slow {', '.join(kinds)} are closed by their deadlines"
    assert good.failures == [], good.failures[:3]
    yield f"{good.count} requests of others were answered meanwhile, the slowest in {good.worst_ms:.0f} ms"
    assert cluster.stop(node) == 0


class Good(threading.Thread):
    """A well-behaved client that continuously requests a head and publishes."""

    def __init__(self, node):
        super().__init__(daemon=True)
        self.node, self.count, self.worst_ms, self.failures, self.is_over = node, 0, 0.0, [], False

    def run(self):
        while not self.is_over:
            start = time.monotonic()
            try:
                status, _, body = self.node.ask("GET", "/v1/streams/good/head")
                assert status == 200 and json.loads(body)["stream"] == "good", (status, body)
                self.node.publish("good")
            except Exception as error:
                self.failures.append(repr(error))
            self.count += 1
            self.worst_ms = max(self.worst_ms, (time.monotonic() - start) * 1000)
            time.sleep(0.02)

    def stop(self):
        self.is_over = True
        self.join()
