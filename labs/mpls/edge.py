#!/usr/bin/env python3
"""Puts the IP packets of a host onto a label switched path, for kernels without MPLS.

    edge.py INTERFACE TUN ROUTER_MAC LABEL
    edge.py INTERFACE TUN ROUTER_MAC ADDRESS=LABEL...

Makes the interface TUN. What the host routes there leaves by INTERFACE with LABEL, to the label switching router with this MAC
address; with labels by destination, packets to other addresses are dropped. Packets that arrive at INTERFACE with labels lose them and come out of TUN; those without are the kernel's. Needs root.
With a kernel that has mpls_router, this does the same: ip route add PREFIX encap mpls LABEL via inet ADDRESS dev INTERFACE
"""

import fcntl
import ipaddress
import os
import select
import socket
import struct
import sys

MPLS = 0x8847
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000


def chooser(labels):
    """A function from a packet to its label, or None."""
    if len(labels) == 1 and "=" not in labels[0]:
        return lambda _: int(labels[0])
    pairs = (one.split("=") for one in labels)
    known = {ipaddress.ip_address(address).packed: int(label) for address, label in pairs}
    return lambda packet: known.get(bytes(packet[16:20] if packet[0] >> 4 == 4 else packet[24:40]))


def main(interface, tun, router, *labels):
    label_of = chooser(labels)
    device = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH", tun.encode(), IFF_TUN | IFF_NO_PI))
    wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(MPLS))
    wire.bind((interface, MPLS))
    own = wire.getsockname()[4]
    head = bytes.fromhex(router.replace(":", "")) + own + struct.pack("!H", MPLS)
    print("ready", flush=True)
    while True:
        for ready in select.select([device, wire], [], [])[0]:
            if ready == device:
                packet = os.read(device, 9216)
                ttl = packet[8] if packet[0] >> 4 == 4 else packet[7]
                label = label_of(packet)
                if label is None:
                    continue
                entry = label << 12 | 1 << 8 | ttl
                wire.send(head + struct.pack("!I", entry) + packet)
                continue
            frame, (_, _, kind, _, _) = wire.recvfrom(9216)
            stack, bottom = frame[14:], False
            while not bottom and len(stack) >= 4:
                stack, bottom = stack[4:], stack[2] & 1
            if frame[:6] == own and kind != socket.PACKET_OUTGOING and stack:
                os.write(device, stack)


if __name__ == "__main__":
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    main(*sys.argv[1:])
