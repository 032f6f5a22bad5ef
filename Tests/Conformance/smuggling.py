"""Tests request smuggling through a proxy (HAProxy) that shares its connections to the node among clients. Whatever one
client sends, the others must get the answers to their own requests, and no client the answer to a hidden request."""

import json
import socket
import subprocess

from nodes import eventually, free_port, tool

CONFIG = """
defaults
    mode http
    timeout connect 5s
    timeout client 20s
    timeout server 20s
    option http-keep-alive
    http-reuse always
frontend front
    bind 127.0.0.1:{port}
    default_backend nodes
backend nodes
    server node {node} maxconn 1
"""

HIDDEN = "GET /v1/streams/hidden/head HTTP/1.1\r\nHost: h\r\n\r\n"


def post(fields, body, version="HTTP/1.1"):
    return f"POST /v1/streams/smuggling/events {version}\r\nHost: h\r\n{fields}\r\n\r\n{body}"


def chunked(text):
    return f"{len(text):x}\r\n{text}\r\n0\r\n\r\n"


LENGTH = f"Content-Length: {len(HIDDEN)}"
TABLE = {
    "length and chunks": post(f"{LENGTH}\r\nTransfer-Encoding: chunked", "0\r\n\r\n" + HIDDEN),
    "chunks and length": post("Transfer-Encoding: chunked\r\nContent-Length: 4", chunked(HIDDEN)),
    "two lengths": post(f"Content-Length: 0\r\n{LENGTH}", HIDDEN),
    "two equal lengths": post(f"{LENGTH}\r\n{LENGTH}", HIDDEN),
    "a list of lengths": post(f"Content-Length: 0, {len(HIDDEN)}", HIDDEN),
    "a length with a sign": post(f"Content-Length: +{len(HIDDEN)}", HIDDEN),
    "a negative length": post("Content-Length: -1", HIDDEN),
    "a length in hex": post(f"Content-Length: 0x{len(HIDDEN):x}", HIDDEN),
    "a length with a blank inside": post("Content-Length: 0 1", HIDDEN),
    "a length before a blank and a colon": post(f"Content-Length : {len(HIDDEN)}", HIDDEN),
    "a folded length": post(f"Content-Length:\r\n {len(HIDDEN)}", HIDDEN),
    "chunks before a blank and a colon": post("Transfer-Encoding : chunked", "0\r\n\r\n" + HIDDEN),
    "folded chunks": post("Transfer-Encoding:\r\n chunked", "0\r\n\r\n" + HIDDEN),
    "chunks behind a tab": post("Transfer-Encoding:\tchunked", "0\r\n\r\n" + HIDDEN),
    "chunks behind a vertical tab": post("Transfer-Encoding: \x0bchunked", "0\r\n\r\n" + HIDDEN),
    "chunks twice": post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", "0\r\n\r\n" + HIDDEN),
    "chunks and identity": post("Transfer-Encoding: chunked, identity", "0\r\n\r\n" + HIDDEN),
    "identity and chunks": post("Transfer-Encoding: identity\r\nTransfer-Encoding: chunked", "0\r\n\r\n" + HIDDEN),
    "another coding": post(f"Transfer-Encoding: xchunked\r\n{LENGTH}", HIDDEN),
    "chunks in quotes": post(f'Transfer-Encoding: "chunked"\r\n{LENGTH}', HIDDEN),
    "chunks in HTTP/1.0": post("Connection: keep-alive\r\nTransfer-Encoding: chunked", "0\r\n\r\n" + HIDDEN, "HTTP/1.0"),
    "a chunk's size with a sign": post("Transfer-Encoding: chunked", "+0\r\n\r\n" + HIDDEN),
    "a chunk's size in 0x": post("Transfer-Encoding: chunked", "0x0\r\n\r\n" + HIDDEN),
    "a chunk's size beyond 64 bits": post("Transfer-Encoding: chunked", "10000000000000000\r\n\r\n" + HIDDEN),
    "a chunk that ends with LF": post("Transfer-Encoding: chunked", "0\n\n" + HIDDEN),
    "a chunk's extension with LF": post("Transfer-Encoding: chunked", "0;x=\n\r\n\r\n" + HIDDEN),
    "a chunk longer than it says": post("Transfer-Encoding: chunked", "1\r\nab\r\n0\r\n\r\n" + HIDDEN),
    "a trailer that is a length": post("Transfer-Encoding: chunked", f"0\r\n{LENGTH}\r\n\r\n" + HIDDEN),
    "heads that end with LF": post(LENGTH, HIDDEN).replace("\r\n", "\n"),
    "a CR inside a field": post(f"X: a\rContent-Length: {len(HIDDEN)}", HIDDEN),
    "a NUL inside a field": post(f"X: a\0b\r\n{LENGTH}", HIDDEN),
    "a length that goes with the hop": post(f"Connection: Content-Length\r\n{LENGTH}", HIDDEN),
    "a body of GET": f"GET /v1/streams/smuggling/head HTTP/1.1\r\nHost: h\r\n{LENGTH}\r\n\r\n" + HIDDEN,
    "another host in the target": "GET http://other/v1/streams/smuggling/head HTTP/1.1\r\nHost: h\r\n\r\n",
    "a line in the target": "GET /v1/streams/smuggling/head%0d%0a%0d%0aGET HTTP/1.1\r\nHost: h\r\n\r\n",
    "a WebSocket that is refused": "GET /v1/socket HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Version: 777\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n" + HIDDEN,
    "a body that is waited for": post(f"Expect: 100-continue\r\n{LENGTH}", HIDDEN),
}
# In these requests the node sees nothing hidden: it answers a second request after a complete first one.
FOLLOWS = {"chunks behind a tab", "a trailer that is a length", "a WebSocket that is refused"}


def check(cluster):
    haproxy = tool("haproxy")
    port = free_port()
    file = cluster.folder / "haproxy.cfg"
    file.write_text(CONFIG.format(port=port, node=cluster.gateway.address))
    proxy = subprocess.Popen([haproxy, "-f", file, "-db"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        eventually("the proxy listens", lambda: ask(port, "first")[0] == 200)
        for name, request in TABLE.items():
            # The proxy may normalize the request; then the proxy and the node both see two requests. If only one of
            # them sees two, the next clients get the answers of others.
            send(port, request)
            for number in range(3):
                stream = f"victim-{number}"
                status, body = ask(port, stream)
                assert status == 200 and json.loads(body)["stream"] == stream, f"{name}: another got {status} {body}"
        yield f"{len(TABLE)} ways to hide a request behind another: nobody gets another's answer"
        for name, request in TABLE.items():
            if name in FOLLOWS:
                continue
            answers = send(cluster.gateway.port, request)
            assert b'"hidden"' not in answers, f"{name}, without a proxy: {answers[:1000]!r}"
        yield "nor without the proxy"
    finally:
        proxy.terminate()
        proxy.wait()


def send(port, request):
    """Sends a request, and returns the bytes that come until the other side ends or is silent for 0.5 s."""
    answers = b""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        try:
            connection.sendall(request.encode("latin-1"))
            connection.settimeout(0.5)
            while data := connection.recv(1 << 16):
                answers += data
        except (TimeoutError, ConnectionError):
            pass
    return answers


def ask(port, stream):
    """Sends a request as a new client, and returns the status and the body."""
    request = f"GET /v1/streams/{stream}/head HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
    answer = b""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
            connection.sendall(request.encode())
            while data := connection.recv(1 << 16):
                answer += data
    except ConnectionError:
        return 0, b""
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), body
