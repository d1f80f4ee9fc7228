"""A hub over AF_XDP: each frame leaves by all other interfaces. For `plane: {kind: process, xdp: true}`.

The network's XDP programs are there already; this program makes a socket for each interface, and puts it into the interface's map.
Source: Linux Documentation/networking/af_xdp.rst, include/uapi/linux/if_xdp.h.
"""

import ctypes
import mmap
import os
import select
import socket
import struct

AF_XDP, SOL_XDP, XDP_COPY = 44, 283, 1 << 1
MMAP_OFFSETS, RX_RING, TX_RING, UMEM_REG, FILL_RING, COMPLETION_RING = 1, 2, 3, 4, 5, 6
BPF_MAP_UPDATE_ELEM, SYS_BPF = 2, {"x86_64": 321, "aarch64": 280}[os.uname().machine]
SLOT, SLOTS = 2048, 512  # bytes of a frame; half of the frames receive, half send
libc = ctypes.CDLL(None, use_errno=True)


class Ring:
    """One side of a ring that is shared with the kernel."""

    def __init__(self, sock, option, page, offsets, entry):
        sock.setsockopt(SOL_XDP, option, SLOTS)
        producer, consumer, entries, _flags = offsets
        self.memory = mmap.mmap(sock.fileno(), entries + SLOTS * entry.size, offset=page)
        self.producer = ctypes.c_uint32.from_buffer(self.memory, producer)
        self.consumer = ctypes.c_uint32.from_buffer(self.memory, consumer)
        self.entries, self.entry = entries, entry

    def push(self, *values):
        at = self.producer.value
        self.entry.pack_into(self.memory, self.entries + at % SLOTS * self.entry.size, *values)
        self.producer.value = (at + 1) & 0xFFFFFFFF

    def pull(self):
        at = self.consumer.value
        if at == self.producer.value:
            return None
        values = self.entry.unpack_from(self.memory, self.entries + at % SLOTS * self.entry.size)
        self.consumer.value = (at + 1) & 0xFFFFFFFF
        return values


class Port:
    """An AF_XDP socket on queue 0 of an interface, with memory of its own."""

    def __init__(self, name, xskmap):
        self.name = name
        self.sock = sock = socket.socket(AF_XDP, socket.SOCK_RAW, 0)
        self.memory = mmap.mmap(-1, SLOT * SLOTS)
        address = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        sock.setsockopt(SOL_XDP, UMEM_REG, struct.pack("=QQII", address, SLOT * SLOTS, SLOT, 0))
        offsets = struct.unpack("=16Q", sock.getsockopt(SOL_XDP, MMAP_OFFSETS, 128))
        address_only, descriptor = struct.Struct("=Q"), struct.Struct("=QII")
        self.fill = Ring(sock, FILL_RING, 0x100000000, offsets[8:12], address_only)
        self.done = Ring(sock, COMPLETION_RING, 0x180000000, offsets[12:16], address_only)
        self.received = Ring(sock, RX_RING, 0, offsets[0:4], descriptor)
        self.to_send = Ring(sock, TX_RING, 0x80000000, offsets[4:8], descriptor)
        self.free = [SLOT * slot for slot in range(SLOTS // 2, SLOTS)]
        for slot in range(SLOTS // 2):
            self.fill.push(SLOT * slot)
        # struct sockaddr_xdp: family, flags, interface, queue, no other socket's memory.
        place = struct.pack("=HHIII", AF_XDP, XDP_COPY, socket.if_nametoindex(name), 0, 0)
        self.check(libc.bind(sock.fileno(), place, len(place)), "bind")
        key, value = ctypes.c_uint32(0), ctypes.c_uint32(sock.fileno())
        attributes = struct.pack("=IIQQQ", xskmap, 0, ctypes.addressof(key), ctypes.addressof(value), 0)
        self.check(libc.syscall(SYS_BPF, BPF_MAP_UPDATE_ELEM, attributes, len(attributes)), "put the socket into the map")

    def check(self, result, what):
        if result < 0:
            raise OSError(ctypes.get_errno(), f"{self.name}: {what}: {os.strerror(ctypes.get_errno())}")

    def send(self, frame):
        while (sent := self.done.pull()) is not None:
            self.free.append(sent[0])
        if not self.free:
            return  # the interface does not keep up: the frame is lost
        at = self.free.pop()
        self.memory[at : at + len(frame)] = frame
        self.to_send.push(at, len(frame), 0)
        libc.sendto(self.sock.fileno(), None, 0, socket.MSG_DONTWAIT, None, 0)


maps = dict(word.split("=") for word in os.environ["HUEPLANE_XSKMAPS"].split())
ports = [Port(name, int(maps[name])) for name in os.environ["HUEPLANE_INTERFACES"].split()]
print(len(ports), "ports", flush=True)
while True:
    ready, _, _ = select.select([port.sock for port in ports], [], [])
    for port in ports:
        while port.sock in ready and (got := port.received.pull()) is not None:
            at, length, _ = got
            frame = bytes(port.memory[at : at + length])
            port.fill.push(at - at % SLOT)
            for other in ports:
                if other is not port:
                    other.send(frame)
