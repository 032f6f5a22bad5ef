"""Gives schemathesis values that it cannot guess: the epoch of the log, for 70 % of the cases, and seqs of the log."""

import os
import random

import schemathesis

EPOCH, HEAD = os.environ["REEL_EPOCH"], int(os.environ["REEL_HEAD"])
chance = random.Random(7)


def real(members):
    """Replaces values by real ones. A node rightly waits for a seq beyond the log, which would take too long."""
    if not isinstance(members, dict):
        return members
    if "epoch" in members and chance.random() < 0.7:
        members["epoch"] = EPOCH
    for name in ("after", "min_seq"):
        if isinstance(members.get(name), int) and not isinstance(members[name], bool) and members[name] > HEAD:
            members[name] %= HEAD + 1
    if isinstance(members.get("wait"), int):
        members["wait"] = min(members["wait"], 1)
    for ack in members.get("acks") or []:
        if isinstance(ack, dict) and isinstance(ack.get("seq"), int):
            ack["seq"] %= HEAD + 1
    return members


@schemathesis.hook
def map_query(context, query):
    return real(query)


@schemathesis.hook
def map_body(context, body):
    return real(body)


@schemathesis.hook
def map_path_parameters(context, path):
    return real(path)
