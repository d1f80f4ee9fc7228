#!/usr/bin/env python3
"""UDP flows for labs/ecmp/lab.

    flows.py answer WAY    in a router: answers each packet to 10.9.0.1, port 7, with its number
    flows.py ask           in the host: a packet of each of 400 flows; prints source port and the number in the answer
    flows.py watch WAY     in the host: a packet every 10 ms of a flow that takes this way, until SIGINT; prints how long it had no answer
"""

import signal
import socket
import sys
import time

SERVER = ("10.9.0.1", 7)
FLOWS = range(20000, 20400)
# Source ports of `watch`, which runs beside `ask`.
WATCHED = range(21000, 21400)
INTERVAL_S = 0.01
SECONDS_MAX = 20


def answer(way):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(SERVER)
        while True:
            _, sender = server.recvfrom(64)
            try:
                server.sendto(way.encode(), sender)
            except OSError:
                # The router has no way back to the host while its link is lost.
                pass


def socket_of(port):
    flow = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    flow.bind(("10.0.0.2", port))
    return flow


def way_of(flow, deadline):
    flow.settimeout(0.3)
    while True:
        flow.sendto(b"?", SERVER)
        try:
            return flow.recv(64).decode()
        except TimeoutError:
            # The neighbours are not resolved yet, or a link has just failed.
            if time.monotonic() > deadline:
                sys.exit(f"flow {flow.getsockname()[1]}: no answer from 10.9.0.1")


def ask():
    deadline = time.monotonic() + SECONDS_MAX
    for port in FLOWS:
        with socket_of(port) as flow:
            print(port, way_of(flow, deadline))


def flow_by(way):
    deadline = time.monotonic() + SECONDS_MAX
    for port in WATCHED:
        flow = socket_of(port)
        if way_of(flow, deadline) == way:
            return port, flow
        flow.close()
    sys.exit(f"no flow takes way {way}")


def watch(way):
    port, flow = flow_by(way)
    running = True

    def end(*_):
        nonlocal running
        running = False

    signal.signal(signal.SIGINT, end)
    print(f"flow {port} takes way {way}", flush=True)
    asked = answered = 0
    start = last = time.monotonic()
    gap = 0.0

    def take(until):
        nonlocal way, answered, last, gap
        while (left := until - time.monotonic()) > 0:
            flow.settimeout(left)
            try:
                way = flow.recv(64).decode()
            except TimeoutError:
                return
            now = time.monotonic()
            gap, last, answered = max(gap, now - last), now, answered + 1

    while running:
        flow.sendto(b"?", SERVER)
        asked += 1
        take(start + asked * INTERVAL_S)
    # Answers that are on their way.
    take(time.monotonic() + 0.3)
    lost = asked - answered
    print(f"flow {port} takes way {way}; {lost} packets lost, one every 10 ms: {lost * 10} ms; the longest time without an answer: "
          f"{gap * 1000:.0f} ms")


if sys.argv[1:2] == ["answer"]:
    answer(sys.argv[2])
elif sys.argv[1:2] == ["watch"]:
    watch(sys.argv[2])
else:
    ask()
