#!/usr/bin/env python3
"""Writes the captures of this folder: what the hosts of red, green and blue send, p0.pcap to p3.pcap.

Needs only the standard library. The same script gives the same bytes: times count from a fixed moment.

    labs/basic/make-captures.py            writes the captures and packets.md, the list of what is in them
    labs/basic/make-captures.py --check    compares instead; exit code 1 when a file differs
"""

import ipaddress
import struct
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
START_S = 1_767_225_600  # 2026-01-01 00:00:00 UTC
BROADCAST = "ff:ff:ff:ff:ff:ff"

# Router MAC addresses of hueplane.yaml, by network and physical port.
ROUTER = {
    ("red", "p0"): "02:00:00:00:01:01",
    ("red", "p1"): "02:00:00:00:01:02",
    ("green", "p0"): "02:00:00:00:02:01",
    ("green", "p3"): "02:00:00:00:02:02",
    ("blue", "p2"): "02:00:00:00:03:01",
    ("blue", "p3"): "02:00:00:00:03:02",
}
# The hosts beside the routers.
HOST = {
    ("red", "p0"): "02:00:00:00:0a:01",
    ("red", "p1"): "02:00:00:00:0a:02",
    ("green", "p0"): "02:00:00:00:0b:01",
    ("green", "p3"): "02:00:00:00:0b:02",
    ("blue", "p2"): "02:00:00:00:0c:01",
    ("blue", "p3"): "02:00:00:00:0c:02",
}


def mac(text):
    return bytes.fromhex(text.replace(":", ""))


def ip(text):
    return ipaddress.IPv4Address(text).packed


def checksum(data):
    """Internet checksum, RFC 1071."""
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def ethernet(destination, source, ethertype, payload):
    """A frame, padded to the 60 bytes that Ethernet asks for (the frame check sequence is not captured)."""
    return (mac(destination) + mac(source) + struct.pack("!H", ethertype) + payload).ljust(60, b"\0")


def ipv4(source, destination, payload, ttl=64, protocol=1, damage=0):
    """An IPv4 packet; `damage` is added to its header checksum."""
    head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(payload), 0, 0x4000, ttl, protocol, 0)
    head += ip(source) + ip(destination)
    total = (checksum(head) + damage) & 0xFFFF
    return head[:10] + struct.pack("!H", total) + head[12:] + payload


def echo(sequence, reply=False, data_bytes=32):
    """An ICMP echo request or reply, RFC 792."""
    data = bytes(at & 0xFF for at in range(data_bytes))
    rest = struct.pack("!HH", 7, sequence) + data
    kind = 0 if reply else 8
    return struct.pack("!BBH", kind, 0, checksum(struct.pack("!BBH", kind, 0, 0) + rest)) + rest


def arp_request(sender_mac, sender, target):
    """Who has `target`? RFC 826."""
    head = struct.pack("!HHBBH", 1, 0x0800, 6, 4, 1)
    return head + mac(sender_mac) + ip(sender) + bytes(6) + ip(target)


def ping(network, port, source, destination, sequence=1, reply=False, data_bytes=32, **header):
    """A host's echo to its router's MAC address."""
    packet = ipv4(source, destination, echo(sequence, reply, data_bytes), **header)
    return ethernet(ROUTER[network, port], HOST[network, port], 0x0800, packet)


def packets():
    """Every packet: port, time in ms, frame, who sends it, what it is, and its outcome."""
    inside, outside = "10.1.0.2", "10.9.1.1"
    yield "p0", 0, ping("red", "p0", inside, outside), "red", "ping 10.9.1.1", "forward to p1"
    yield "p0", 1, ping("green", "p0", inside, outside), "green", "the same ping, with the same addresses", \
        "forward to p3"
    yield "p2", 2, ping("blue", "p2", inside, outside), "blue", "the same ping again", \
        "forward to p2: blue's route leads back to p2"
    yield "p1", 10, ping("red", "p1", outside, inside, reply=True), "red", "the answer", "forward to p0"
    yield "p3", 11, ping("green", "p3", outside, inside, reply=True), "green", "the answer", "forward to p0"
    yield "p0", 20, ping("red", "p0", inside, outside, 2, ttl=1), "red", "ping 10.9.1.1 with TTL 1", "punt `ttl`"
    yield "p0", 21, ping("red", "p0", inside, "192.0.2.1"), "red", "ping 192.0.2.1", "punt `no_route`"
    yield "p0", 22, ping("green", "p0", inside, "192.0.2.1"), "green", "ping 192.0.2.1", \
        "forward to p3: green has a default route"
    yield "p0", 23, ping("red", "p0", inside, "10.1.0.1"), "red", "ping its router", "punt `local`"
    yield "p0", 24, ping("red", "p0", inside, outside, 3, damage=1), "red", "ping with a damaged header checksum", \
        "drop `checksum`"
    ipv6 = ethernet(ROUTER["red", "p0"], HOST["red", "p0"], 0x86DD, bytes([0x60]) + bytes(39))
    yield "p0", 25, ipv6, "red", "IPv6", "drop `ethertype`"
    arp = ethernet(BROADCAST, HOST["red", "p0"], 0x0806, arp_request(HOST["red", "p0"], inside, "10.1.0.1"))
    yield "p0", 500, arp, "red", "broadcast: who has 10.1.0.1?", "red and green, both on p0, each punt `arp`"
    arp = ethernet(BROADCAST, HOST["blue", "p2"], 0x0806, arp_request(HOST["blue", "p2"], inside, "10.1.0.1"))
    yield "p2", 501, arp, "blue", "broadcast: who has 10.1.0.1?", "blue, alone on p2, punts `arp`"
    stray = ethernet("02:00:00:00:99:99", HOST["red", "p0"], 0x0800, ipv4(inside, outside, echo(4)))
    yield "p0", 502, stray, "red", "a ping to a MAC address of no router", "unclaimed `no_network`"
    stray = ethernet(ROUTER["blue", "p2"], HOST["red", "p0"], 0x0800, ipv4(inside, outside, echo(5)))
    yield "p0", 503, stray, "red", "a ping to blue's router, which is not on p0", "unclaimed `no_network`"
    yield "p0", 504, mac(ROUTER["red", "p0"]) + bytes(6), "red", "12 bytes", "unclaimed `runt`"
    yield "p2", 510, ping("blue", "p2", inside, "10.2.0.2"), "blue", "ping 10.2.0.2", "forward to p3"
    yield "p3", 511, ping("blue", "p3", "10.2.0.2", inside, reply=True), "blue", "the answer", "forward to p2"
    yield "p2", 512, ping("blue", "p2", inside, "10.64.1.1"), "blue", "ping 10.64.1.1, whose next hop 10.2.0.3 is unknown", \
        "punt `no_neighbour`"
    yield "p2", 513, ping("blue", "p2", inside, "10.2.0.2", 2, data_bytes=1472), "blue", \
        "ping 10.2.0.2 with 1,500 bytes of IP; p3 takes 1,400", "punt `mtu`"
    for number in range(6):
        what = "forward to p3" if number < 3 else "drop `rate_limited`: green may send bursts of 3"
        yield "p0", 1000 + number, ping("green", "p0", inside, outside, 10 + number), "green", \
            f"ping {number + 1} of 6 in a burst", what


def pcap(records):
    """A classic pcap file: little endian, microseconds, link type Ethernet."""
    out = [struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)]
    for time_ms, frame in records:
        out.append(struct.pack("<IIII", START_S + time_ms // 1000, time_ms % 1000 * 1000, len(frame), len(frame)))
        out.append(frame)
    return b"".join(out)


def listing(rows):
    """The packets as a Markdown table."""
    lines = [
        "# The packets in the captures",
        "",
        "<!-- Written by make-captures.py: edit that file instead. -->",
        "",
        "The packets are in order of time. [Outcomes](../../docs/reference/outcomes.md) explains the outcomes.",
        "",
        "| port | packet | ms | sent by a host of | content | outcome |",
        "| --- | ---: | ---: | --- | --- | --- |",
    ]
    numbers = {}
    for port, time_ms, _, network, what, fate in rows:
        numbers[port] = numbers.get(port, 0) + 1
        lines.append(f"| {port} | {numbers[port]} | {time_ms} | {network} | {what} | {fate} |")
    return "\n".join(lines) + "\n"


def write(folder, files, arguments):
    """Writes files into a folder, or with `--check` compares them. Returns the exit code."""
    if arguments not in ([], ["--check"]):
        print(f"make-captures: unknown arguments {arguments}: expected none or --check", file=sys.stderr)
        return 2
    stale = []
    for name, content in files.items():
        path = folder / name
        if path.exists() and path.read_bytes() == content:
            continue
        if arguments:
            stale.append(name)
        else:
            path.write_bytes(content)
            print(f"wrote {name}: {len(content)} bytes")
    script = f"labs/{folder.name}/make-captures.py"
    for name in stale:
        print(f"make-captures: {name} is not what this script makes: run {script}", file=sys.stderr)
    return 1 if stale else 0


def files_of(rows):
    """The captures and the listing: packets in order of time."""
    rows = sorted(rows, key=lambda row: row[1])
    files = {"packets.md": listing(rows).encode()}
    for port in sorted({row[0] for row in rows}):
        files[f"{port}.pcap"] = pcap([(time_ms, frame) for on, time_ms, frame, *_ in rows if on == port])
    return files


if __name__ == "__main__":
    sys.exit(write(HERE, files_of(packets()), sys.argv[1:]))
