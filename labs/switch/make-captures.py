#!/usr/bin/env python3
"""Writes the captures of this folder: what the hosts of lan and six send, p0.pcap to p3.pcap.

Needs only the standard library. The same script gives the same bytes: times count from a fixed moment.

    labs/switch/make-captures.py            writes the captures and packets.md, the list of what is in them
    labs/switch/make-captures.py --check    compares instead; exit code 1 when a file differs
"""

import ipaddress
import runpy
import struct
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
BASIC = runpy.run_path(str(HERE.parent / "basic/make-captures.py"))
BROADCAST, checksum, mac = BASIC["BROADCAST"], BASIC["checksum"], BASIC["mac"]
ethernet, ipv4, echo, arp_request = BASIC["ethernet"], BASIC["ipv4"], BASIC["echo"], BASIC["arp_request"]

# Hosts of the switch: MAC address and IPv4 address. The switch looks at the first only.
ALICE = ("02:00:00:00:0a:01", "10.7.0.1")
BOB = ("02:00:00:00:0b:01", "10.7.0.2")
ANN = ("02:00:00:00:0a:02", "10.7.0.3")
PRINTER = ("02:00:00:00:0d:01", "10.7.0.9")
NOBODY = ("02:00:00:00:0f:0f", "10.7.0.99")
# Hosts of the router: MAC address and IPv6 address.
CAROL = ("02:00:00:00:0c:01", "2001:db8:1::2")
DAVE = ("02:00:00:00:0c:02", "2001:db8:2::2")
ROUTER = {"p2": "02:00:00:00:06:01", "p3": "02:00:00:00:06:02"}


def ping(source, destination, sequence=1, reply=False):
    """An echo from one host to another on the same link."""
    packet = ipv4(source[1], destination[1], echo(sequence, reply))
    return ethernet(destination[0], source[0], 0x0800, packet)


def ip6(text):
    return ipaddress.IPv6Address(text).packed


def icmp6(source, destination, kind, body, hop_limit=64):
    """An IPv6 packet with an ICMPv6 message, RFC 4443."""
    pseudo = ip6(source) + ip6(destination) + struct.pack("!II", 4 + len(body), 58)
    message = struct.pack("!BBH", kind, 0, checksum(pseudo + struct.pack("!BBH", kind, 0, 0) + body)) + body
    head = struct.pack("!IHBB", 6 << 28, len(message), 58, hop_limit)
    return head + ip6(source) + ip6(destination) + message


def ping6(port, source, destination, sequence=1, reply=False, **header):
    """A host's echo to its router's MAC address."""
    body = struct.pack("!HH", 7, sequence) + bytes(32)
    packet = icmp6(source[1], destination, 129 if reply else 128, body, **header)
    return ethernet(ROUTER[port], source[0], 0x86DD, packet)


def packets():
    """Every packet: port, time in ms, frame, who sends it, what it is, and its outcome."""
    who = ethernet(BROADCAST, ALICE[0], 0x0806, arp_request(*ALICE, BOB[1]))
    yield "p0", 0, who, "alice", "broadcast: who has bob's address?", "`flood` to p1 and p2; alice is learnt at a"
    reply = struct.pack("!HHBBH", 1, 0x0800, 6, 4, 2) + mac(BOB[0]) + ipaddress.IPv4Address(BOB[1]).packed
    reply += mac(ALICE[0]) + ipaddress.IPv4Address(ALICE[1]).packed
    yield "p1", 1, ethernet(ALICE[0], BOB[0], 0x0806, reply), "bob", "the answer", "forward to p0; bob is learnt at b"
    yield "p0", 2, ping(ALICE, BOB), "alice", "ping bob", "forward to p1: nobody at p2 sees it"
    yield "p1", 3, ping(BOB, ALICE, reply=True), "bob", "the answer", "forward to p0"
    yield "p0", 4, ping(ALICE, PRINTER), "alice", "ping the printer, which has never sent anything", \
        "forward to p2: the address is static"
    forged = ethernet(BROADCAST, PRINTER[0], 0x0806, arp_request(*PRINTER, ALICE[1]))
    yield "p1", 5, forged, "bob", "a broadcast with the printer's address as its source", "drop `wrong_port`"
    yield "p0", 6, ping(ANN, ALICE), "ann", "ping alice, who is behind p0 too", "drop `same_port`"
    lldp = bytes.fromhex("0207040200000a01" "040303" "7030" "06020078" "0000")
    lldp = ethernet("01:80:c2:00:00:0e", ALICE[0], 0x88CC, lldp)
    yield "p0", 7, lldp, "alice", "LLDP, which no switch forwards", "punt `reserved`"
    moved = ping(ALICE, PRINTER, 2)
    yield "p1", 20, moved, "alice", "ping the printer, now from p1", "forward to p2; alice is learnt at b"
    yield "p2", 21, ping(PRINTER, ALICE, 2, reply=True), "the printer", "the answer", "forward to p1, where alice is now"

    yield "p2", 30, ping6("p2", CAROL, DAVE[1]), "carol", "ping dave, behind the router", "six: forward to p3"
    yield "p3", 31, ping6("p3", DAVE, CAROL[1], reply=True), "dave", "the answer", "six: forward to p2"
    yield "p2", 32, ping6("p2", CAROL, "2001:db8:9::1", hop_limit=1), "carol", "ping 2001:db8:9::1 with hop limit 1", \
        "six: punt `hop_limit`"
    yield "p2", 33, ping6("p2", CAROL, "2001:db8:f::1"), "carol", "ping 2001:db8:f::1", "six: punt `no_route`"
    # Who has the router's address? RFC 4861 §4.3.
    asked = bytes(4) + ip6("2001:db8:1::1") + b"\x01\x01" + mac(CAROL[0])
    group = icmp6(CAROL[1], "ff02::1:ff00:1", 135, asked, hop_limit=255)
    group = ethernet("33:33:ff:00:00:01", CAROL[0], 0x86DD, group)
    yield "p2", 500, group, "carol", "multicast: who has 2001:db8:1::1?", \
        "lan and six are both on p2: lan sends it to p0 and p1 (`flood`), six punts it (`local`)"

    for number in range(6):
        what = "`flood` to p0 and p2" if number < 4 else "drop `storm`: four may go to all ports at once"
        yield "p1", 2000 + number, ping(BOB, NOBODY, 10 + number), "bob", \
            f"ping {number + 1} of 6 to an address that nobody has", what


if __name__ == "__main__":
    sys.exit(BASIC["write"](HERE, BASIC["files_of"](packets()), sys.argv[1:]))
