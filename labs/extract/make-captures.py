#!/usr/bin/env python3
"""Writes the captures of this folder: what the hosts of first64 and names send, p0.pcap to p3.pcap.

Needs only the standard library. The same script gives the same bytes: times count from a fixed moment.

    labs/extract/make-captures.py            writes the captures and packets.md, the list of what is in them
    labs/extract/make-captures.py --check    compares instead; exit code 1 when a file differs
"""

import runpy
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
BASIC = runpy.run_path(str(HERE.parent / "basic/make-captures.py"))
BROADCAST, mac = BASIC["BROADCAST"], BASIC["mac"]
ethernet, ipv4, echo, arp_request = BASIC["ethernet"], BASIC["ipv4"], BASIC["echo"], BASIC["arp_request"]

# Hosts of first64: MAC address and IPv4 address. The plane looks at the first only.
ALICE = ("02:00:00:00:00:a1", "10.5.0.1")
BOB = ("02:00:00:00:00:b1", "10.5.0.2")
OLD_BOB = ("02:00:00:00:00:b2", "10.5.0.2")
STRANGER = ("06:00:00:00:00:a9", "10.5.0.9")
# Hosts of names.
CAROL = "02:00:00:00:00:c1"
DAVE = "02:00:00:00:00:d1"
LOCAL_EXPERIMENTAL = 0x88B5  # IEEE 802, Local Experimental EtherType 1


def ping(source, destination, sequence=1, reply=False):
    """An echo from one host to another."""
    packet = ipv4(source[1], destination[1], echo(sequence, reply))
    return ethernet(destination[0], source[0], 0x0800, packet)


def named(source, destination, name, kind, content=b""):
    """A frame of the protocol of names; `kind` is the byte with the class."""
    body = name.to_bytes(2, "big") + bytes([len(content), kind]) + content
    return mac(destination) + mac(source) + LOCAL_EXPERIMENTAL.to_bytes(2, "big") + body


def packets():
    """Every packet: port, time in ms, frame, who sends it, what it is, and its outcome."""
    yield "p0", 0, ping(ALICE, BOB), "alice", "ping bob", "forward to p1, unchanged"
    yield "p1", 1, ping(BOB, ALICE, reply=True), "bob", "the answer", "forward to p0"
    odd = ethernet(BOB[0], ALICE[0], LOCAL_EXPERIMENTAL, b"no IP at all")
    yield "p0", 2, odd, "alice", "a frame to bob that is not IP", "forward to p1: its first 64 bits are the same"
    yield "p0", 3, ping(ALICE, OLD_BOB, 2), "alice", "ping bob at his old address", \
        "forward to p1 with bob's new address, and the port's as source"
    who = ethernet(BROADCAST, ALICE[0], 0x0806, arp_request(*ALICE, BOB[1]))
    yield "p0", 4, who, "alice", "broadcast: who has bob's address?", "punt `punt_entry`: the fourth entry"
    nobody = ("02:00:00:00:00:77", "10.5.0.7")
    yield "p0", 5, ping(ALICE, nobody, 3), "alice", "ping an address that nobody has", "drop `drop_entry`: the last entry"
    yield "p0", 6, ping(STRANGER, BOB), "a stranger", "ping bob from an address that begins with 06:00", \
        "drop `drop_entry`: bytes 6 and 7 are not 0x0200, so only the last entry matches"
    yield "p1", 7, ethernet("33:33:00:00:00:01", BOB[0], 0x86DD, bytes(40)), "bob", "multicast", "drop `no_entry`"

    yield "p2", 20, named(CAROL, DAVE, 0xA012, 0x00, b"hello"), "carol", "name a012", "forward to p3: the name begins with a0"
    yield "p2", 21, named(CAROL, DAVE, 0xA012, 0xF8, b"hello"), "carol", "name a012, other bits in the byte with the class", \
        "forward to p3: the key has only the class"
    yield "p3", 22, named(DAVE, CAROL, 0x7771, 0x00, b"hi"), "dave", "name 7771", "forward to p2: the name ends with 1"
    yield "p2", 23, named(CAROL, DAVE, 0xA011, 0x07), "carol", "name a011, class 7", \
        "punt `punt_entry`: all three entries match, the first one counts"
    yield "p2", 25, named(CAROL, DAVE, 0xA012, 0x00)[:17], "carol", "a frame that ends before the class", "drop `short`"
    yield "p2", 26, named(CAROL, DAVE, 0xA013, 0x00, bytes(97)), "carol", "name a013, 101 bytes behind the EtherType", \
        "drop `mtu`: d takes 100"
    yield "p2", 27, named(CAROL, DAVE, 0xA013, 0x00, bytes(96)), "carol", "name a013, 100 bytes behind the EtherType", \
        "forward to p3"


if __name__ == "__main__":
    sys.exit(BASIC["write"](HERE, BASIC["files_of"](packets()), sys.argv[1:]))
