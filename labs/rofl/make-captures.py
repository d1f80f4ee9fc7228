#!/usr/bin/env python3
"""Writes the captures of this folder: what arrives at the ports of west and east, p0.pcap to p3.pcap.

Needs only the standard library. The same script gives the same bytes: times count from a fixed moment.

    labs/rofl/make-captures.py            writes the captures and packets.md, the list of what is in them
    labs/rofl/make-captures.py --check    compares instead; exit code 1 when a file differs
"""

import runpy
import struct
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
BASIC = runpy.run_path(str(HERE.parent / "basic/make-captures.py"))
mac, ipv4, echo = BASIC["mac"], BASIC["ipv4"], BASIC["echo"]

# Labels and MAC addresses of hueplane.yaml.
WEST, WEST_HOSTS, WEST_UP = 0x10000000, "02:00:00:00:08:00", "02:00:00:00:08:01"
EAST, EAST_HOSTS, EAST_UP = 0x80000000, "02:00:00:00:08:03", "02:00:00:00:08:02"
ALICE, ALICE_MAC = 0x20000000, "02:00:00:00:00:a1"
BOB, BOB_MAC = 0xA0000000, "02:00:00:00:00:b1"
CAROL, CAROL_MAC = 0x90000000, "02:00:00:00:00:c1"  # nobody has an entry for her
FLAG_LINK, FLAG_CLOSEST = 1, 2


def flat(to, frm, destination, source, payload=b"", budget=16, flags=0, route=(), version=1, payload_type=0x0800):
    """A frame with flat labels (decision 0070)."""
    header = struct.pack("!BBBBHH", version << 4 | flags, 4, budget, len(route), payload_type, len(payload))
    labels = b"".join(label.to_bytes(4, "big") for label in (destination, source, *route))
    return (mac(to) + mac(frm) + b"\x88\xb5" + header + labels + payload).ljust(60, b"\0")


def packets():
    """Every packet: port, time in ms, frame, who sends it, what it is, and its outcome."""
    ping = ipv4("10.8.0.1", "10.8.0.2", echo(1, False))
    pong = ipv4("10.8.0.2", "10.8.0.1", echo(1, True))
    yield "p0", 0, flat(WEST_HOSTS, ALICE_MAC, BOB, ALICE, ping), "alice", "ping bob at 0xa0000000", \
        "forward to p1: 0x80000000 is the closest label that west knows"
    yield "p2", 1, flat(EAST_UP, WEST_UP, BOB, ALICE, ping, budget=15), "west", "the same", \
        "forward to p3: bob is resident"
    yield "p3", 2, flat(EAST_HOSTS, BOB_MAC, ALICE, BOB, pong), "bob", "the answer", \
        "forward to p2: the closest before 0x20000000 is 0x10000000"
    yield "p1", 3, flat(WEST_UP, EAST_UP, ALICE, BOB, pong, budget=15), "east", "the same", "forward to p0: alice is resident"
    yield "p0", 4, flat(WEST_HOSTS, ALICE_MAC, 0x20000001, ALICE), "alice", "a label that nobody has", \
        "drop `unknown_label`: the closest is her own"
    yield "p0", 5, flat(WEST_HOSTS, ALICE_MAC, 0x18000000, ALICE, flags=FLAG_CLOSEST), "alice", \
        "0x18000000 wants to join, flag closest", "punt `for_closest`: its place is behind west's own label"
    yield "p0", 6, flat(WEST_HOSTS, ALICE_MAC, WEST, ALICE), "alice", "for west itself", "punt `for_us`"
    yield "p0", 7, flat(WEST_HOSTS, CAROL_MAC, BOB, CAROL, route=[CAROL]), "carol", "to bob, with her label as source route", \
        "forward to p1; west caches the pointer to her label, because it has no entry for it"
    yield "p1", 8, flat(WEST_UP, EAST_UP, CAROL, BOB, pong), "east", "to carol", \
        "forward to p0: the pointer is closer than any entry"
    yield "p1", 9, flat(WEST_UP, EAST_UP, 0x90000001, BOB), "east", "one behind her label", "forward to p0, by the same pointer"
    yield "p1", 10_009, flat(WEST_UP, EAST_UP, CAROL, BOB, pong), "east", "to carol, 10 s later", \
        "drop `loop`: the pointer has expired, and 0x80000000 is where the packet comes from"
    yield "p0", 10_010, flat(WEST_HOSTS, ALICE_MAC, BOB, ALICE, budget=1), "alice", "to bob, hop budget 1", "drop `hop_budget`"
    yield "p0", 10_011, flat(WEST_HOSTS, ALICE_MAC, BOB, ALICE, version=2), "alice", "version 2", "drop `bad_version`"
    yield "p2", 10_012, flat(EAST_UP, WEST_UP, BOB, ALICE, bytes(585)), "west", "601 bytes behind the EtherType", \
        "drop `mtu`: p3 takes 600"
    yield "p2", 10_013, flat(EAST_UP, WEST_UP, BOB, ALICE, bytes(584)), "west", "600 bytes", "forward to p3"
    hello = flat("01:00:5e:00:00:55", WEST_UP, 0, WEST, b"hello", flags=FLAG_LINK, payload_type=0x88B6)
    yield "p2", 10_014, hello, "west", "to its neighbours, flag link", "punt `link`"


if __name__ == "__main__":
    sys.exit(BASIC["write"](HERE, BASIC["files_of"](packets()), sys.argv[1:]))
