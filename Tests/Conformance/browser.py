"""Tests WebSocket, EventSource and fetch of a browser (headless Chromium) on a page of another origin."""

import contextlib
import http.server
import json
import pathlib
import queue
import subprocess
import threading

from nodes import tool

PAGE = pathlib.Path(__file__).parent / "page.html"


class Page(http.server.BaseHTTPRequestHandler):
    """Serves the page, which posts its results at its end."""

    found = queue.Queue()

    def do_GET(self):
        self.answer(PAGE.read_bytes())

    def do_POST(self):
        self.found.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.answer(b"")

    def answer(self, body):
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def visit(origin, node, folder):
    words = [tool("chromium"), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
    words += ["--no-first-run", f"--user-data-dir={folder}", "--remote-debugging-port=0"]
    with (folder.parent / "chromium.log").open("w") as log:
        browser = subprocess.Popen([*words, f"{origin}/?node={node.address}"], stdout=log, stderr=log)
        try:
            return Page.found.get(timeout=100)
        finally:
            browser.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                browser.wait(10)
            browser.kill()
            browser.wait()


def check(cluster):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    origin = f"http://127.0.0.1:{server.server_port}"
    log = f"sqlite:{cluster.folder}/browser.sqlite"
    allowing = cluster.start("allowing", "gateway", "--log", log, "--allow-origin", origin)
    try:
        found = visit(origin, allowing, cluster.folder / "profile")
        assert found == {"fetch": "published", "socket": [0, 1], "events": [0, 1], "resumable": True}, found
        yield "a page of an allowed origin publishes, subscribes, and its EventSource follows"
        found = visit(origin, cluster.gateway, cluster.folder / "profile")
        assert found == {"fetch": "refused", "socket": "refused", "events": "refused", "resumable": False}, found
        yield "a page of another origin gets nothing"
    finally:
        server.shutdown()
        assert cluster.stop(allowing) == 0
