#!/usr/bin/env python3
"""Writes the captures of this folder: what the hosts of sites and pairs send, p0.pcap to p3.pcap.

Needs only the standard library. The same script gives the same bytes: times count from a fixed moment.

    labs/policy/make-captures.py            writes the captures and packets.md, the list of what is in them
    labs/policy/make-captures.py --check    compares instead; exit code 1 when a file differs
"""

import runpy
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
BASIC = runpy.run_path(str(HERE.parent / "basic/make-captures.py"))
echo, ethernet, ipv4 = BASIC["echo"], BASIC["ethernet"], BASIC["ipv4"]

NETWORK = {"sites": 1, "pairs": 2}


def ping(network, port, source, destination, sequence=1, reply=False, **header):
    """An echo from a host or router at a port to the network's MAC address there."""
    number, side = NETWORK[network], int(port[1]) + 1
    packet = ipv4(source, destination, echo(sequence, reply), **header)
    return ethernet(f"02:00:00:00:{number:02x}:{side:02x}", f"02:00:00:00:{9 + number:02x}:{side:02x}", 0x0800, packet)


def packets():
    """Every packet: port, time in ms, frame, who sends it, what it is, and its outcome."""
    server = "10.9.0.1"
    yield "p0", 0, ping("sites", "p0", "10.1.1.2", server), "site 1", f"ping {server}", "sites: forward to p2, router a"
    yield "p1", 1, ping("sites", "p1", "10.1.2.2", server), "site 2", f"ping {server}", "sites: forward to p3, router b"
    yield "p2", 2, ping("sites", "p2", server, "10.1.1.2", reply=True), "router a", "the answer to site 1", \
        "sites: forward to p0: site 1 is on a link"
    yield "p3", 3, ping("sites", "p3", server, "10.1.2.2", reply=True), "router b", "the answer to site 2", \
        "sites: forward to p1"
    yield "p0", 4, ping("sites", "p0", "10.1.1.2", "10.1.2.2"), "site 1", "ping site 2", \
        "sites: forward to p1: a link, so no route by source counts"
    yield "p0", 5, ping("sites", "p0", "10.1.1.2", "10.1.4.1"), "site 1", "ping the network's own address", \
        "sites: punt `local`"
    yield "p2", 6, ping("sites", "p2", "192.0.2.7", server), "router a", f"ping {server}, from 192.0.2.7", \
        "sites: forward to p2: no route by source matches"
    yield "p2", 7, ping("sites", "p2", "192.0.2.7", "198.51.100.1"), "router a", "ping 198.51.100.1, from 192.0.2.7", \
        "sites: punt `no_route`"
    yield "p0", 8, ping("sites", "p0", "10.1.1.2", server, 2, ttl=1), "site 1", f"ping {server} with TTL 1", \
        "sites: punt `ttl`"

    yield "p0", 20, ping("pairs", "p0", "10.2.1.2", server), "site 1", f"ping {server}", \
        "pairs: forward to p3: 24 bits of the source and 16 of the destination"
    yield "p1", 21, ping("pairs", "p1", "10.2.2.2", server), "site 2", f"ping {server}", "pairs: forward to p2"
    yield "p0", 22, ping("pairs", "p0", "10.2.1.3", "10.9.9.1"), "another host of site 1", "ping 10.9.9.1", \
        "pairs: forward to p3: 40 bits are more than the 24 of the route to 10.9.9.0/24"
    yield "p0", 23, ping("pairs", "p0", "10.2.1.2", "10.9.9.1"), "site 1", "ping 10.9.9.1", \
        "pairs: forward to p2: 56 bits are more than 40"
    yield "p0", 24, ping("pairs", "p0", "10.2.1.2", "198.51.100.1"), "site 1", "ping 198.51.100.1", \
        "pairs: forward to p2, by the default route"


if __name__ == "__main__":
    sys.exit(BASIC["write"](HERE, BASIC["files_of"](packets()), sys.argv[1:]))
