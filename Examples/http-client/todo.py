#!/usr/bin/env python3
"""A todo list on Reel over HTTP: todo.py add TITLE | done ID | list | watch. Python 3.9 or newer, no packages."""

import http.client, itertools, json, os, sys, time, urllib.parse, uuid

NODES = itertools.cycle(os.environ.get("NODES", "http://127.0.0.1:7350").split(","))
node = next(NODES)


class Refused(Exception):
    """A node refuses a request, and would refuse the same request again. The text is the body of the answer."""


def call(path, body=None, key=None):
    """Returns the answer of a node. Repeats the request, with the same key, while no node can answer it."""
    global node
    headers = {"content-type": "application/json", **({"idempotency-key": key} if key else {})}
    while True:
        url = urllib.parse.urlsplit(node)
        scheme = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
        connection = scheme(url.netloc, timeout=40)
        try:
            connection.request("POST" if body else "GET", f"/v1/streams/todo/{path}", body, headers)
            answer = connection.getresponse()
            status, text = answer.status, answer.read()
            if status < 300:
                return text
            if status < 500 and status != 429:
                raise Refused(text.decode())
            reason = f"status {status}"
        except (OSError, http.client.HTTPException) as error:  # The request or its answer was lost.
            reason = error
        finally:
            connection.close()
        print(f"{node}: {reason}; next try in 1 s", file=sys.stderr, flush=True)
        time.sleep(1)
        node = next(NODES)


def publish(event):
    """Publishes one event. The key makes all repetitions of the request count as one."""
    body = json.dumps({"events": [event]})
    ack = json.loads(call("events", body, key=str(uuid.uuid4())))["acks"][0]
    print(event["id"], ack.get("outcome", "durable"), "at seq", ack["seq"])


def apply(lines, tasks):
    """Applies a snapshot or a delta to `tasks`. Returns the epoch and the seq of the new state."""
    header, *changes, end = [json.loads(line) for line in lines.splitlines()]
    for change in changes:
        if change.get("object", [""])[0] == "task":  # A field is [value, seq of its last writer, …].
            tasks[change["object"][1]] = {name: field[0] for name, field in change["fields"].items()}
        elif change.get("deleted", [""])[0] == "task":
            tasks.pop(change["deleted"][1], None)
    return header["epoch"], header["seq"]


def watch(once):
    """Shows the tasks. Unless `once` is true, shows them again after each event, and does not return."""
    path, tasks = "snapshot", {}
    while True:
        try:
            epoch, seq = apply(call(path), tasks)
            for id, task in tasks.items():
                print("[x]" if task.get("done") else "[ ]", id, task.get("title", ""))
            print("--", flush=True)
            if once:
                return
            events = []
            while not events:  # One request waits up to 20 s for an event.
                page = json.loads(call(f"events?after={seq}&epoch={epoch}&models=task&wait=20"))
                events, after, seq = page["events"], seq, page["to"]
            # `min_seq`: the answer must contain the effect of these events.
            path = f"delta?after={after}" if after >= 0 else "snapshot?"
            path += f"&epoch={epoch}&min_seq={seq}"
        except Refused as refusal:
            if json.loads(str(refusal))["code"] not in ("epoch_changed", "truncated"):
                raise
            path, tasks = "snapshot", {}  # The known state cannot be continued.


if __name__ == "__main__":
    try:
        command, *words = sys.argv[1:] or ["help"]
        if command == "add" and words:
            fields = {"title": " ".join(words), "done": False}
            publish({"type": "insert", "model": "task", "id": uuid.uuid4().hex[:12], "fields": fields})
        elif command == "done" and words:
            publish({"type": "update", "model": "task", "id": words[0], "fields": {"done": True}})
        elif command in ("list", "watch"):
            watch(once=command == "list")
        else:
            sys.exit(__doc__)
    except Refused as refusal:
        sys.exit(f"refused: {refusal}")
