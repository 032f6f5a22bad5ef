"""openapi.yaml: it is valid, and nodes answer as it says, whatever they are asked: no 5xx, no status that does not
stand there."""

import os
import pathlib
import re
import subprocess
import sys

PAGE = pathlib.Path(__file__).parents[2] / "Sources/ReelNode/openapi.yaml"
CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,"
    "response_headers_conformance,unsupported_method"
)


def check(cluster):
    tools = pathlib.Path(sys.executable).parent
    subprocess.run([tools / "openapi-spec-validator", PAGE], check=True, capture_output=True)
    yield "the page is valid"
    # No partition is empty: what stands in one is asked of all.
    for stream in ("todo", *map(str, range(30))):
        cluster.gateway.publish(stream, 100)
    heads = [cluster.gateway.get(f"/v1/streams/{stream}/head") for stream in range(30)]
    epoch, head = heads[0]["epoch"], min(place["head"] for place in heads)
    for node in (cluster.gateway, cluster.snapshot):
        words = [tools / "st", "run", PAGE, "--url", f"http://{node.address}", "--checks", CHECKS, "--no-color"]
        # What is refused by ordinary clients before it is sent, and what never ends, is no case here.
        words += ["--max-time", "60", "--phases", "examples,coverage,fuzzing", "--request-timeout", "30"]
        words += ["--generation-deterministic", "--continue-on-failure", "--suppress-health-check", "all"]
        # What a node has not is no case either; and with several workers Python's own parser may fail (3.11).
        words += ["--include-tag", node.name, "--workers", "1"]
        names = {**os.environ, "SCHEMATHESIS_HOOKS": "hooks", "REEL_EPOCH": epoch, "REEL_HEAD": str(head)}
        names["PYTHONPATH"] = str(pathlib.Path(__file__).parent)
        run = subprocess.run(words, env=names, capture_output=True, text=True, cwd=cluster.folder)
        assert run.returncode == 0, f"schemathesis against the {node.name}:\n{run.stdout[-12000:]}{run.stderr[-2000:]}"
        cases = re.search(r"([\d,]+) generated", run.stdout)
        yield f"schemathesis found nothing at the {node.name} in {cases.group(1) if cases else '?'} cases"
