#!/usr/bin/env python3
"""Writes the route files of this folder: three networks that share most of their routes, and changes to one of them.

Needs only the standard library. The same script gives the same bytes; there is no real network behind them.

    labs/tables/make-tables.py            writes red.txt, green.txt, blue.txt, updates.txt and queries.txt
    labs/tables/make-tables.py --check    compares instead; exit code 1 when a file differs
"""

import ipaddress
import random
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
SEED = 36
COMMON_ROUTES = 800
HOPS = ["core1", "core2", "core3", "core4"]
SPACE = [("10.0.0.0/8", 6), ("100.64.0.0/10", 3), ("172.16.0.0/12", 2)]  # and how often routes are drawn from it
LENGTHS = [(16, 1), (20, 2), (22, 4), (24, 12)]  # and how often


def draw(rng, pairs):
    values, weights = zip(*pairs)
    return rng.choices(values, weights)[0]


def prefix_in(rng, block, length):
    block = ipaddress.IPv4Network(block)
    address = int(block.network_address) + rng.randrange(block.num_addresses)
    return ipaddress.IPv4Network((address >> (32 - length) << (32 - length), length))


def common(rng):
    """Routes that all three have. The default route comes first, so that every network names its next hops in the
    same order: next hops are numbered as they are met, and only equal numbers make equal tables."""
    routes = {ipaddress.IPv4Network("0.0.0.0/0"): HOPS[0]}
    while len(routes) < COMMON_ROUTES:
        length = draw(rng, LENGTHS)
        # Whole /16 regions leave by one next hop, with exceptions, as they do in real tables.
        prefix = prefix_in(rng, draw(rng, SPACE), length)
        region = int(prefix.network_address) >> 16
        hop = HOPS[region * 7 % len(HOPS)] if rng.random() < 0.8 else rng.choice(HOPS)
        routes.setdefault(prefix, hop)
    return routes


def own(rng, block, count, hop):
    routes = {}
    while len(routes) < count:
        routes[prefix_in(rng, block, 24)] = hop
    return routes


def text(title, routes):
    lines = [f"# {title}", "# PREFIX NEXTHOP"]
    lines += [f"{prefix} {hop}" for prefix, hop in routes]
    return "\n".join(lines) + "\n"


def tables():
    rng = random.Random(SEED)
    shared = common(rng)
    ordered = sorted(shared.items(), key=lambda route: (route[0].network_address, route[0].prefixlen))
    # Red and green have customers of their own, at the same addresses; blue leaves 10.64.0.0/12 by another way.
    red = own(rng, "192.168.0.0/18", 30, "customer-red")
    green = own(rng, "192.168.0.0/18", 40, "customer-green")
    west = ipaddress.IPv4Network("10.64.0.0/12")
    blue = [(prefix, "west" if prefix.subnet_of(west) else hop) for prefix, hop in ordered if prefix.prefixlen]
    blue = [(prefix, hop) for prefix, hop in ordered if not prefix.prefixlen] + blue
    updates = []
    for prefix, hop in ordered[1:]:
        change = rng.random()
        if change < 0.03:
            updates.append(f"W {prefix}")
        elif change < 0.06:
            updates.append(f"A {prefix} {rng.choice(HOPS)}")
    updates += [f"A {prefix} customer-blue" for prefix in own(rng, "192.168.0.0/18", 12, "")]
    rng.shuffle(updates)
    customer = min(prefix for prefix in red if prefix in green)
    western = min(prefix for prefix, _ in ordered if prefix.prefixlen == 24 and prefix.subnet_of(west))
    asked = [f"{prefix.network_address + 9}" for prefix in (customer, western)] + ["203.0.113.9"]
    queries = [f"{name} {address}" for address in asked for name in ("red", "green", "blue")]
    return {
        "red.txt": text("red: the common routes and 30 customers", [*ordered, *sorted(red.items())]),
        "green.txt": text("green: the common routes and 40 customers", [*ordered, *sorted(green.items())]),
        "blue.txt": text("blue: the common routes, 10.64.0.0/12 by another way", blue),
        "updates.txt": "# changes of blue: A PREFIX NEXTHOP, W PREFIX\n" + "\n".join(updates) + "\n",
        "queries.txt": "# NAME ADDRESS\n" + "\n".join(queries) + "\n",
    }


def main(arguments):
    if arguments not in ([], ["--check"]):
        print(f"make-tables: unknown arguments {arguments}: expected none or --check", file=sys.stderr)
        return 2
    stale = []
    for name, content in tables().items():
        path = HERE / name
        if path.exists() and path.read_text() == content:
            continue
        if arguments:
            stale.append(name)
        else:
            path.write_text(content)
            print(f"wrote {name}: {len(content)} bytes")
    for name in stale:
        print(f"make-tables: {name} is not what this script makes: run labs/tables/make-tables.py", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
