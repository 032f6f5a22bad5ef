#!/usr/bin/env python3
"""Measures the effect of attacks on a well-behaved client of a node.

`attack.py REEL [NAME…]` starts `reel serve` with keys on the loopback. A good client connects before the attack. In
turn, it requests the head of a stream and publishes with the outcome, with pauses of 10 ms. Its times are measured
alone, beside a process that only computes, and beside each attack. The process that computes shows how much an attacker
slows this machine without any request to the node. The script prints the p99 of both requests, and their ratios to the
p99 beside that process. It exits with 1 if a ratio is above LIMIT and the p99 is higher by more than SLACK_MS. It also
exits with 1 if a request of the good client fails, or if the process of an attacker dies.

`attack.py REEL all MINUTES` runs all attacks except `idle` together on one node, and reads the node's memory and
descriptors every 5 s. It exits with 1 if one of them grows: its maximum in the last third of the time is above GROWTH
times that in the second third. It also exits with 1 if a request of the good client fails or an attacker dies.

Attackers run with the lowest priority, because they share the cores with the node, and real attackers do not.
The script needs only Python's own library; the attack `idle` also needs HAProxy.
"""
import base64, http.client, json, multiprocessing, os, pathlib, random, shutil, socket, struct, subprocess, sys
import tempfile, time, uuid, zlib

LIMIT = 1.5
SLACK_MS = 2.0
GROWTH = 1.2
SECONDS = 6.0
HAPROXY_CONFIG = pathlib.Path(__file__).resolve().parents[2] / "deploy" / "haproxy.cfg"


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class Node:
    def __init__(self, reel, options=(), has_front=False):
        self.folder = tempfile.mkdtemp(prefix="reel-attack-")
        keys, public = self.folder + "/keys.json", self.folder + "/public.json"
        run = lambda *words: subprocess.run([reel, *words], check=True, capture_output=True, text=True).stdout
        open(keys, "w").write(run("token", "keygen"))
        open(public, "w").write(run("token", "keygen", "--public", keys))
        make = lambda sub, *rights: run("token", "issue", "--jwks", keys, "--sub", sub, "--for", "3600", *rights).strip()
        self.good = make("good", "--read", "good", "--publish", "good")
        self.eve = make("eve", "--read", "eve*", "--publish", "eve*")
        self.port = free_port()
        self.process = subprocess.Popen(
            [reel, "serve", "--data", self.folder + "/data", "--listen", f"127.0.0.1:{self.port}", "--jwks", public,
             *options],
            stdout=subprocess.DEVNULL, stderr=open(self.folder + "/journal", "w"))
        self.front = self.start_front() if has_front else None
        for _ in range(200):
            try:
                if self.ask("GET", "/readyz")[0] == 200:
                    break
            except OSError:
                pass
            time.sleep(0.05)
        else:
            raise SystemExit("the node did not become ready: " + open(self.folder + "/journal").read())
        self.epoch = json.loads(self.ask("GET", "/readyz")[1])["epoch"]

    def start_front(self):
        """Starts HAProxy before the node; clients then use its port. Two of its three gateways do not exist."""
        gateway, self.port = self.port, free_port()
        names = {"FRONT": self.port, "STATS": free_port(), "GATEWAY_1": gateway, "GATEWAY_2": free_port(),
                 "GATEWAY_3": free_port()}
        environment = {**os.environ, **{name: f"127.0.0.1:{port}" for name, port in names.items()}}
        return subprocess.Popen(["haproxy", "-f", str(HAPROXY_CONFIG)], env=environment, stdout=subprocess.DEVNULL,
                                stderr=open(self.folder + "/haproxy", "w"))

    def usage(self):
        """Returns the resident memory in MiB and the number of open descriptors."""
        pages = int(open(f"/proc/{self.process.pid}/statm").read().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20), len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def connection(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)

    def ask(self, method, path, body=None, token=None):
        connection = self.connection()
        headers = {"authorization": "Bearer " + token} if token else {}
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        return response.status, response.read()

    def close(self):
        for process in [self.front, self.process]:
            if process:
                process.terminate()
                process.wait(timeout=30)
        shutil.rmtree(self.folder, ignore_errors=True)


def events(list_of_events):
    return json.dumps({"events": list_of_events})


# The good client -----------------------------------------------------------------------------------------------------

def good(node, results, connected, begun, seconds=SECONDS):
    """Sends requests until the time is over. Puts the times in milliseconds and the failures into the queue."""
    times, failures = {"head": [], "publish": []}, []
    connection, site, op = node.connection(), str(uuid.uuid4()), 0
    headers = {"authorization": "Bearer " + node.good}
    connection.request("GET", "/v1/streams/good/head", None, headers)
    connection.getresponse().read()
    connected.set()
    begun.wait()
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        for kind in times:
            begun = time.monotonic()
            try:
                if kind == "head":
                    connection.request("GET", "/v1/streams/good/head", None, headers)
                else:
                    event = {"site": site, "op": op, "type": "noop"}
                    connection.request("POST", "/v1/streams/good/events?outcome=1", events([event]), headers)
                    op += 1
                response = connection.getresponse()
                response.read()
                if response.status != 200:
                    failures.append(f"{kind}: {response.status}")
            except (OSError, http.client.HTTPException) as error:
                failures.append(f"{kind}: {error!r}")
                connection = node.connection()
            times[kind].append(1000 * (time.monotonic() - begun))
            time.sleep(0.01)
    results.put((times, failures))


def check_alive(attacker):
    """Ends the run if the process of an attacker has ended. Attacks run until they are killed."""
    if not attacker.is_alive():
        raise SystemExit(f"the attacker {attacker.name} died with exit code {attacker.exitcode}")


def start(attack, node):
    """Starts an attack and waits until it has begun."""
    def run(node, begun):
        os.nice(19)
        attack(node, begun)
    begun = multiprocessing.Event()
    attacker = multiprocessing.Process(target=run, args=(node, begun), name=attack.__name__, daemon=True)
    attacker.start()
    until = time.monotonic() + 120
    while not begun.wait(timeout=0.1):
        check_alive(attacker)
        assert time.monotonic() < until, f"{attack.__name__} has not begun"
    return attacker


def p99(times):
    return {kind: sorted(list_)[int(len(list_) * 0.99)] for kind, list_ in times.items()}


def measure(node, attacks, seconds=SECONDS, meanwhile=lambda: None):
    """Returns the times of each kind of request in milliseconds, and the failures, beside attacks or alone."""
    results, connected, begun = multiprocessing.Queue(), multiprocessing.Event(), multiprocessing.Event()
    client = multiprocessing.Process(target=good, args=(node, results, connected, begun, seconds), daemon=True)
    client.start()
    assert connected.wait(timeout=60), "the good client has not connected"
    attackers = [start(attack, node) for attack in attacks]
    begun.set()
    while results.empty() and client.is_alive():
        meanwhile()
        for attacker in attackers:
            check_alive(attacker)
        time.sleep(0.1)
    times, failures = results.get(timeout=60)
    client.join()
    for attacker in attackers:
        check_alive(attacker)
    for attacker in attackers:
        attacker.kill()
        attacker.join()
    return times, failures


# Attacks. Each sets `begun` once it has started, and runs until it is killed. -----------------------------------------

def raw(node, head, source="127.0.0.1"):
    client = socket.create_connection(("127.0.0.1", node.port), source_address=(source, 0))
    client.sendall(head.encode())
    return client


def quietly(action):
    try:
        return action()
    except (OSError, http.client.HTTPException):
        return None


def is_closed(client):
    """Reads what has arrived, without waiting. Returns true if the node has closed the connection."""
    client.setblocking(False)
    try:
        return client.recv(1 << 20) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True
    finally:
        client.setblocking(True)


def computes(node, begun):
    """No attack: the process only creates events and sends none."""
    begun.set()
    while True:
        json.dumps([{"site": str(uuid.uuid4()), "op": 0, "type": "noop"} for _ in range(1000)])


def waits(node, begun):
    """1,000 connections wait for a seq that the log never reaches."""
    def begin():
        path = f"/v1/streams/eve/snapshot?epoch={node.epoch}&min_seq=9007199254740991"
        return raw(node, f"GET {path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {node.eve}\r\n\r\n")
    clients = [begin() for _ in range(1000)]
    begun.set()
    while True:
        time.sleep(0.02)
        old = clients.pop(0)
        if old:
            old.close()
        clients.append(quietly(begin))


def signatures(node, begun):
    """200 tokens a second with a known key and a wrong signature."""
    head, claims, signature = node.eve.split(".")
    begun.set()
    while True:
        length = len(base64.urlsafe_b64decode(signature + "=="))
        wrong = base64.urlsafe_b64encode(os.urandom(length)).decode().rstrip("=")
        quietly(lambda: node.ask("GET", "/v1/streams/eve/head", token=f"{head}.{claims}.{wrong}"))
        time.sleep(0.005)


def sites(node, begun):
    """Requests with 1,000 events of new sites each. The stream changes after three requests, which is its limit."""
    begun.set()
    number = 0
    while True:
        number += 1
        batch = [{"site": str(uuid.uuid4()), "op": 0, "type": "noop"} for _ in range(1000)]
        quietly(lambda: node.ask("POST", f"/v1/streams/eve-{number // 3}/events", events(batch), node.eve))
        time.sleep(0.05)


def web_socket(node, token=None):
    client = socket.create_connection(("127.0.0.1", node.port))
    key = base64.b64encode(os.urandom(16)).decode()
    client.sendall((
        f"GET /v1/socket HTTP/1.1\r\nHost: 127.0.0.1:{node.port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: reel.v1\r\n"
        "Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n").encode())
    head = b""
    while b"\r\n\r\n" not in head:
        piece = client.recv(4096)
        if not piece:
            client.close()
            raise ConnectionError("the node closed the connection before its answer was complete")
        head += piece
    if token:
        client.sendall(frame(json.dumps({"t": "hello", "client": "attack", "token": token}).encode()))
    return client


def frame(payload, packed=False):
    if packed:
        packer = zlib.compressobj(9, zlib.DEFLATED, -15)
        payload = (packer.compress(payload) + packer.flush(zlib.Z_SYNC_FLUSH))[:-4]
    first = bytes([0xC1 if packed else 0x81])
    length = bytes([0x80 | len(payload)]) if len(payload) < 126 else (
        bytes([0xFE]) + struct.pack(">H", len(payload)) if len(payload) < 65536 else
        bytes([0xFF]) + struct.pack(">Q", len(payload)))
    return first + length + bytes(4) + payload


def packed_keys(node, begun):
    """20 connections a second that send, before hello, 1 MiB of JSON with unsorted escaped keys, compressed to 4 kB."""
    keys = ["\\u0061" * 320 + f"{i:07d}" for i in range(537)]
    random.shuffle(keys)
    text = '{"t":"hello","x":{' + ",".join(f'"{key}":0' for key in keys) + '},"client":"x"}'
    packed = frame(text.encode(), packed=True)
    begun.set()
    while True:
        client = quietly(lambda: web_socket(node))
        if client:
            quietly(lambda: client.sendall(packed))
            client.close()
        time.sleep(0.05)


def packed_frames(node, begun):
    """60 frames like those of `packed_keys` in one write after hello, twice a second."""
    keys = ["\\u0061" * 320 + f"{i:07d}" for i in range(537)]
    random.shuffle(keys)
    text = '{"t":"unsubscribe","stream":"eve","x":{' + ",".join(f'"{key}":0' for key in keys) + "}}"
    packed = 60 * frame(text.encode(), packed=True)
    begun.set()
    while True:
        client = quietly(lambda: web_socket(node, node.eve))
        if client:
            quietly(lambda: client.sendall(packed))
            time.sleep(0.5)
            client.close()


def subscribes(node, begun):
    """20 sockets that repeat 1,000 subscriptions each, at a position beyond the end of the log."""
    clients = [web_socket(node, node.eve) for _ in range(20)]
    begun.set()
    while True:
        for index, client in enumerate(clients):
            frames = [frame(json.dumps({"t": "subscribe", "stream": f"eve-{number}", "epoch": node.epoch,
                                        "after": 9007199254740000}).encode()) for number in range(1000)]
            client.setblocking(False)
            quietly(lambda: client.sendall(b"".join(frames)))
            if is_closed(client):
                clients[index] = quietly(lambda: web_socket(node, node.eve)) or client
        time.sleep(0.5)


def subscribe_frames(node, begun):
    """8 sockets that repeat a frame with 1,000 subscriptions, and read the answers."""
    streams = [{"stream": f"eve-{number}", "after": "now"} for number in range(1000)]
    text = json.dumps({"t": "subscribe", "streams": streams})
    clients = [web_socket(node, node.eve) for _ in range(8)]
    begun.set()
    while True:
        for index, client in enumerate(clients):
            client.setblocking(False)
            quietly(lambda: client.sendall(frame(text.encode())))
            if quietly(lambda: client.recv(1 << 20)) == b"":
                clients[index] = quietly(lambda: web_socket(node, node.eve)) or client
            clients[index].setblocking(True)
        time.sleep(0.1)


def splices(node, begun):
    """15 streams with a text of 30,000 pieces each, then 240 splices a second with a base before all those pieces."""
    streams = [f"eve-text-{number}" for number in range(15)]
    texts = []

    def publish(stream, list_):
        status, body = node.ask("POST", f"/v1/streams/{stream}/events?outcome=1",
                                json.dumps({"epoch": node.epoch, "events": list_}), node.eve)
        return [ack for ack in json.loads(body)["acks"]] if status == 200 else []

    def splice(site, op, base, triples):
        return {"site": site, "op": op, "base": base, "type": "update", "model": "m", "id": "1",
                "ops": {"t": {"splice": triples}}}

    for stream in streams:
        acks = publish(stream, [{"site": str(uuid.uuid4()), "op": 0, "base": -1, "type": "insert", "model": "m",
                                 "id": "1", "fields": {"t": "b" * 200000}}])
        base = acks[0]["seq"]
        for part in range(5):
            acks += publish(stream, [splice(str(uuid.uuid4()), 0, base,
                                            [[200000 - 6000 * part - i, 0, "b"] for i in range(6000)])])
        assert [ack["outcome"] for ack in acks] == 6 * ["applied"], acks
        texts.append((stream, base, [str(uuid.uuid4()) for _ in range(4)]))
    begun.set()
    op = 0
    while True:
        for stream, base, sites in texts:
            # The limit of new sites does not apply to known sites.
            events_ = [splice(site, op, base, [[100000, 0, "e"]]) for site in sites]
            quietly(lambda: node.ask("POST", f"/v1/streams/{stream}/events",
                                     json.dumps({"epoch": node.epoch, "events": events_}), node.eve))
            time.sleep(0.25 / len(texts))
        op += 1


def slow_readers(node, begun):
    """70 readers of a state of 6 MB, each at 400 bytes a second."""
    site = str(uuid.uuid4())
    for op in range(30):
        node.ask("POST", "/v1/streams/eve-big/events", events([
            {"site": site, "op": op, "type": "insert", "model": "m", "id": str(op),
             "fields": {"t": str(random.random()) * 11000}}]), node.eve)

    def begin():
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", node.port))
        client.sendall((f"GET /v1/streams/eve-big/snapshot HTTP/1.1\r\nHost: a\r\n"
                        f"Authorization: Bearer {node.eve}\r\n\r\n").encode())
        return client
    clients = [begin() for _ in range(70)]
    begun.set()
    while True:
        for index, client in enumerate(clients):
            if not quietly(lambda: client.recv(1200)):
                client.close()
                clients[index] = quietly(begin) or client
        time.sleep(3)


def bodies(node, begun):
    """Bodies of 8 MB with unsorted keys and a token, beside 60 unfinished bodies without a token."""
    open_ones = [raw(node, "POST /v1/streams/eve/events HTTP/1.1\r\nHost: a\r\nContent-Length: 8000000\r\n\r\n")
                 for _ in range(60)]
    for client in open_ones:
        quietly(lambda: client.sendall(bytes(100000)))
    keys = [f"k{i:06d}" for i in range(500000)]
    random.shuffle(keys)
    body = '{"x":{' + ",".join(f'"{key}":0' for key in keys) + "}}"
    begun.set()
    while True:
        quietly(lambda: node.ask("POST", "/v1/streams/eve/events", body, node.eve))
        time.sleep(0.5)


def filters(node, begun):
    """Subscriptions with 100 long models each, to 1,000 streams on each of 4 sockets."""
    models = [f"{i:03d}" + "m" * 120 for i in range(100)]
    clients = [web_socket(node, node.eve) for _ in range(4)]
    begun.set()
    while True:
        for index, client in enumerate(clients):
            for number in range(100):
                name = f"eve-{random.randrange(1000)}"
                text = json.dumps({"t": "subscribe", "stream": name, "after": "now", "models": models})
                quietly(lambda: client.sendall(frame(text.encode(), packed=True)))
            if is_closed(client):
                clients[index] = quietly(lambda: web_socket(node, node.eve)) or client
        time.sleep(0.1)


def idle(node, begun):
    """600 connections from ten addresses through HAProxy. Each sends one request and then stays open."""
    begin = lambda number: quietly(
        lambda: raw(node, "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n", f"127.0.0.{2 + number % 10}"))
    clients = [begin(number) for number in range(600)]
    begun.set()
    while True:
        for index in random.sample(range(600), 10):
            if clients[index]:
                clients[index].close()
            clients[index] = begin(index)
        time.sleep(0.1)


ATTACKS = [
    waits, subscribes, subscribe_frames, signatures, sites, packed_keys, packed_frames, splices, slow_readers, bodies,
    filters, idle]
# With these limits, ten addresses can use up all connections of the node.
IDLE_OPTIONS = ["--connections-max", "300", "--connections-per-address", "100", "--trusted-proxies", "127.0.0.1"]


def node_for(reel, attack):
    return Node(reel, IDLE_OPTIONS, has_front=True) if attack is idle else Node(reel)


def one_by_one(reel, wanted):
    failed, alone = False, {}
    print(f"{'attack':<14} {'head p99':>10} {'ratio':>7} {'publish p99':>12} {'ratio':>7} {'failures':>9}")
    for attack in [None, computes] + [attack for attack in ATTACKS if not wanted or attack.__name__ in wanted]:
        node = node_for(reel, attack)
        try:
            # The first run is a warm-up.
            measure(node, [])
            if attack is idle:
                alone = p99(measure(node, [computes])[0])
            times, failures = measure(node, [attack] if attack else [])
            found = p99(times)
            if attack in (None, computes):
                alone = found
        finally:
            node.close()
        ratios = {kind: found[kind] / alone[kind] for kind in found}
        print(f"{attack.__name__ if attack else 'none':<14} {found['head']:>7.1f} ms {ratios['head']:>7.2f} "
              f"{found['publish']:>9.1f} ms {ratios['publish']:>7.2f} {len(failures):>9}", flush=True)
        for failure in failures[:3]:
            print("    " + failure)
        is_bad = any(ratios[kind] > LIMIT and found[kind] - alone[kind] > SLACK_MS for kind in found)
        failed = failed or bool(failures) or is_bad
    return failed


def all_at_once(reel, minutes):
    node, usages, begun = Node(reel), [], time.monotonic()

    def look():
        if time.monotonic() - begun < 5 * len(usages):
            return
        usages.append(node.usage())
        if len(usages) % 12 == 1:
            memory, descriptors = usages[-1]
            print(f"{time.monotonic() - begun:>6.0f} s {memory:>8.0f} MiB {descriptors:>6} descriptors", flush=True)

    try:
        times, failures = measure(node, [attack for attack in ATTACKS if attack is not idle], 60 * minutes, look)
    finally:
        node.close()
    found = p99(times)
    print(f"good client: head p99 {found['head']:.1f} ms, publish p99 {found['publish']:.1f} ms,"
          f" {sum(map(len, times.values()))} requests, {len(failures)} failures {failures[:3]}")
    third = len(usages) // 3
    highest = [[max(usage[kind] for usage in part) for part in (usages[third:2 * third], usages[2 * third:])]
               for kind in range(2)]
    for name, (before, after) in zip(["memory in MiB", "descriptors"], highest):
        print(f"{name}: at most {before:.0f} in the second third, {after:.0f} in the last")
    return bool(failures) or any(after > GROWTH * before for before, after in highest)


if __name__ == "__main__":
    reel, wanted = sys.argv[1], sys.argv[2:]
    is_soak = wanted[:1] == ["all"]
    sys.exit(1 if (all_at_once(reel, float(wanted[1])) if is_soak else one_by_one(reel, wanted)) else 0)
