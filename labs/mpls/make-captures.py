#!/usr/bin/env python3
"""Writes the captures of this folder: what the hosts beside west and east send, p0.pcap and p1.pcap.

Needs only the standard library. The same script gives the same bytes: times count from a fixed moment.

    labs/mpls/make-captures.py            writes the captures and packets.md, the list of what is in them
    labs/mpls/make-captures.py --check    compares instead; exit code 1 when a file differs
"""

import runpy
import struct
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
BASIC = runpy.run_path(str(HERE.parent / "basic/make-captures.py"))
ethernet, ipv4, echo = BASIC["ethernet"], BASIC["ipv4"], BASIC["echo"]

MPLS = 0x8847
A = ("02:00:00:00:00:a1", "10.10.0.1")
B = ("02:00:00:00:00:b1", "10.10.0.2")
WEST, EAST = "02:00:00:00:0a:01", "02:00:00:00:0c:01"


def labelled(source, destination, labels, packet, ttl=64):
    """A frame with a stack of labels, the top first."""
    stack = b"".join(
        struct.pack("!I", label << 12 | (at + 1 == len(labels)) << 8 | ttl) for at, label in enumerate(labels)
    )
    return ethernet(destination, source[0], MPLS, stack + packet)


def ping(source, destination, sequence, data_bytes=32, reply=False):
    return ipv4(source[1], destination[1], echo(sequence, reply, data_bytes))


def packets():
    """Every packet: port, time in ms, frame, who sends it, what it is, and its outcome."""
    there, back = ping(A, B, 1), ping(B, A, 1, reply=True)
    yield "p0", 0, labelled(A, WEST, [100], there), "west", "ping b, label 100", \
        "forward to p1: west swaps for 200 and pushes 300, middle pops 300, east pops 200; an IP packet with TTL 61"
    yield "p1", 1, labelled(B, EAST, [101], back), "east", "the answer, label 101", \
        "forward to p0: swapped for 201 and 202, then popped"
    yield "p0", 2, labelled(A, WEST, [100], ping(A, B, 2), ttl=3), "west", "label 100, TTL 3", \
        "punt `ttl` at east: the third router lets none through"
    yield "p0", 3, labelled(A, WEST, [999], ping(A, B, 3)), "west", "label 999", "drop `no_entry`"
    yield "p0", 4, labelled(A, WEST, [100], ping(A, B, 4, data_bytes=1468)), "west", "label 100, 1,500 bytes with it", \
        "drop `mtu`: the pushed label makes 1,504"
    yield "p0", 5, labelled(A, WEST, [100], ping(A, B, 5, data_bytes=1464)), "west", "label 100, 1,496 bytes with it", \
        "forward to p1"
    yield "p0", 6, ethernet(WEST, A[0], 0x0800, there), "west", "ping b without a label", "drop `not_mpls`"
    yield "p1", 7, labelled(B, EAST, [102], back), "east", "label 102", "punt `punt_entry`"
    yield "p1", 8, labelled(B, EAST, [103], back), "east", "label 103", "drop `drop_entry`"
    yield "p1", 9, labelled(B, EAST, [0], back), "east", "explicit null", "punt `explicit_null`"
    yield "p1", 10, labelled(B, EAST, [1, 101], back), "east", "router alert above label 101", "punt `router_alert`"
    yield "p1", 11, labelled(B, EAST, [3], back), "east", "implicit null, which no packet has", "drop `reserved`"


if __name__ == "__main__":
    sys.exit(BASIC["write"](HERE, BASIC["files_of"](packets()), sys.argv[1:]))
