#!/usr/bin/env python3
"""UDP flows for labs/ecmp/lab.

    flows.py answer WAY    in a router: answers each packet to 10.9.0.1, port 7, with its number
    flows.py ask           in the host: a packet of each of 400 flows; prints source port and the number in the answer
"""

import socket
import sys
import time

FLOWS = range(20000, 20400)
SECONDS_MAX = 20


def answer(way):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("10.9.0.1", 7))
        while True:
            _, sender = server.recvfrom(64)
            server.sendto(way.encode(), sender)


def ask():
    deadline = time.monotonic() + SECONDS_MAX
    for port in FLOWS:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as flow:
            flow.bind(("10.0.0.2", port))
            flow.settimeout(0.3)
            while True:
                flow.sendto(b"?", ("10.9.0.1", 7))
                try:
                    way = flow.recv(64).decode()
                    break
                except (TimeoutError, ConnectionRefusedError):
                    # The neighbours are not resolved yet, or a link has just failed.
                    if time.monotonic() > deadline:
                        sys.exit(f"flow {port}: no answer from 10.9.0.1")
        print(port, way)


if sys.argv[1:2] == ["answer"]:
    answer(sys.argv[2])
else:
    ask()
