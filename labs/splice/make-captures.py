#!/usr/bin/env python3
"""Writes the captures of this folder: what src and dst send, p0.pcap and p1.pcap.

Needs only the standard library. The same script gives the same bytes: times count from a fixed moment.

    labs/splice/make-captures.py            writes the captures and packets.md, the list of what is in them
    labs/splice/make-captures.py --check    compares instead; exit code 1 when a file differs
"""

import runpy
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
BASIC = runpy.run_path(str(HERE.parent / "basic/make-captures.py"))
checksum, echo, ethernet, ipv4 = BASIC["checksum"], BASIC["echo"], BASIC["ethernet"], BASIC["ipv4"]
SRC, DST = "10.1.0.2", "10.2.0.2"
# MAC addresses: the host's, and its router's.
AT = {"p0": ("02:00:00:00:0a:01", "02:00:00:00:06:00"), "p1": ("02:00:00:00:0a:02", "02:00:00:00:08:00")}


def bits(*slices):
    """Splicing bits of 2 a hop: the slice at the first router is in the lowest ones. The last one stays."""
    slices = slices + slices[-1:] * (8 - len(slices))
    return sum(slice << 2 * hop for hop, slice in enumerate(slices))


def frame(port, number, identification, flags=0x40, reply=False):
    """A host's ping with an identification."""
    source, destination = (SRC, DST) if port == "p0" else (DST, SRC)
    packet = bytearray(ipv4(source, destination, echo(number, reply)))
    packet[4:6], packet[6], packet[10:12] = identification.to_bytes(2, "big"), flags, b"\0\0"
    packet[10:12] = checksum(bytes(packet[:20])).to_bytes(2, "big")
    host, router = AT[port]
    return ethernet(router, host, 0x0800, bytes(packet))


def packets():
    """Every packet: port, time in ms, frame, who sends it, what it is, and its outcome."""
    direct, around = "r0, r2: two hops", "r0, r1, r2: three hops"
    for flow in range(2):
        for number in range(4):
            way = (around, direct)[1 - flow]
            yield "p0", 10 * number + flow, frame("p0", number, bits(flow)), "src", \
                f"flow {flow + 1}: slice {flow} at each router", f"forward to p1 by {way}"
    for number in range(8):
        slice = number % 4
        yield "p0", 100 + number, frame("p0", 10 + number, bits(slice)), "src", \
            f"four flows in turn: slice {slice}", f"forward to p1 by {around if slice % 2 else direct}"
    yield "p0", 200, frame("p0", 20, bits(1, 2, 0)), "src", "slice 1 at r0, 2 at r1, 0 from then on", \
        "forward to p1 by r0, r1, r0, r2: r1's slice 2 leads back, where slice 0 leads on"
    yield "p0", 201, frame("p0", 21, bits(1, 2, 1, 2, 1, 2, 1, 2)), "src", \
        "slices 1 and 2 in turn, 8 times: back and forth between r0 and r1", \
        "forward to p1: when its bits are used up it stays in slice 2, which leads from r0 to r2"
    yield "p0", 202, frame("p0", 22, 3, flags=0), "src", "without DF: the identification has no splicing bits", \
        f"forward to p1 by {direct}"
    yield "p1", 300, frame("p1", 30, bits(0), reply=True), "dst", "an answer in slice 0", "forward to p0 by r2, r0"
    yield "p1", 301, frame("p1", 31, bits(3), reply=True), "dst", "an answer in slice 3", "forward to p0 by r2, r1, r0"


if __name__ == "__main__":
    sys.exit(BASIC["write"](HERE, BASIC["files_of"](packets()), sys.argv[1:]))
