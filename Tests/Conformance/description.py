"""Tests that openapi.yaml is valid, and that the answers of nodes conform to it for all requests and tokens. An answer
must not be a 5xx, nor a status that the page does not list."""

import os
import pathlib
import re
import subprocess
import sys

PAGE = pathlib.Path(__file__).parents[2] / "Sources/ReelNode/openapi.yaml"
TOOLS = pathlib.Path(sys.executable).parent
# With fewer cases, the run would hardly test the thirty operations.
CASES_MIN = 50
CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,"
    "response_headers_conformance,unsupported_method"
)


def check(cluster):
    subprocess.run([TOOLS / "openapi-spec-validator", PAGE], check=True, capture_output=True)
    yield "the page is valid"
    yield from found_by_all(cluster.gateway, cluster.snapshot, {"anybody": []}, 60)
    gateway, snapshot = cluster.guarded()
    bearer = lambda token: ["--header", f"Authorization: Bearer {token}"]
    who = {
        "who may do all": bearer(gateway.token),
        "who may read and publish todo": bearer(cluster.make_token("todo")),
        "who has no token": [],
    }
    yield from found_by_all(gateway, snapshot, who, 20)


def found_by_all(gateway, snapshot, who, seconds):
    """Tests both nodes for this many seconds with each entry of `who`, which has a name and more options."""
    # Every partition needs events, because a seq of one partition is requested of all.
    for stream in ("todo", *map(str, range(30))):
        gateway.publish(stream, 100)
    heads = [gateway.get(f"/v1/streams/{stream}/head") for stream in range(30)]
    place = heads[0]["epoch"], min(found["head"] for found in heads)
    for name, words in who.items():
        for node in (gateway, snapshot):
            cases = count(node, words, place, seconds)
            yield f"schemathesis found nothing at the {node.name}, as {name}, in {cases} cases"


def count(node, more, place, seconds):
    """Checks that schemathesis finds no fault, and returns the number of its cases."""
    words = [TOOLS / "st", "run", PAGE, "--url", f"http://{node.address}", "--checks", CHECKS, "--no-color", *more]
    # These phases leave out requests that ordinary clients cannot send. The timeout ends requests without an end.
    words += ["--max-time", str(seconds), "--phases", "examples,coverage,fuzzing", "--request-timeout", "30"]
    words += ["--generation-deterministic", "--continue-on-failure", "--suppress-health-check", "all"]
    # The tag leaves out routes that the node does not have. With several workers Python's parser may fail (3.11).
    words += ["--include-tag", node.role, "--workers", "1"]
    names = {**os.environ, "SCHEMATHESIS_HOOKS": "hooks", "REEL_EPOCH": place[0], "REEL_HEAD": str(place[1])}
    names["PYTHONPATH"] = str(pathlib.Path(__file__).parent)
    run = subprocess.run(words, env=names, capture_output=True, text=True, cwd=node.file.parent)
    assert run.returncode == 0, f"schemathesis against the {node.name}:\n{run.stdout[-12000:]}{run.stderr[-2000:]}"
    cases = re.search(r"(\d+) generated", run.stdout)
    assert cases and int(cases.group(1)) >= CASES_MIN, f"too few cases at the {node.name}:\n{run.stdout[-2000:]}"
    return cases.group(1)
