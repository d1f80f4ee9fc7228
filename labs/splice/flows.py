#!/usr/bin/env python3
"""Sends UDP packets from 10.1.0.2 to 10.2.0.2 with splicing bits in the identification, for labs/splice/lab.

    flows.py COUNT BITS…    COUNT packets with DF, with each of the bits in turn; the flow's port follows from the bits
"""

import socket
import struct
import sys
import time

SOURCE, DESTINATION = "10.1.0.2", "10.2.0.2"


def packet(bits, number):
    """The kernel fills in the checksum of the header; UDP may have none."""
    payload = number.to_bytes(4, "big")
    udp = struct.pack("!HHHH", 20000 + bits % 4, 9, 8 + len(payload), 0) + payload
    head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(udp), bits, 0x4000, 64, socket.IPPROTO_UDP, 0)
    return head + socket.inet_aton(SOURCE) + socket.inet_aton(DESTINATION) + udp


def main():
    count, choices = int(sys.argv[1]), [int(bits, 0) for bits in sys.argv[2:]]
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) as out:
        out.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"eth0")
        for number in range(count):
            out.sendto(packet(choices[number % len(choices)], number), (DESTINATION, 0))
            time.sleep(0.0005)


main()
