import os, select, socket

def open_port(name):
    port = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    port.bind((name, 0))
    return port

ports = [open_port(name) for name in os.environ["HUEPLANE_INTERFACES"].split()]
behind = {}
print(len(ports), "ports", flush=True)
while True:
    for port in select.select(ports, [], [])[0]:
        frame, sender = port.recvfrom(65535)
        if sender[2] == socket.PACKET_OUTGOING:
            continue
        behind[frame[6:12]] = port
        known = behind.get(frame[:6])
        for other in [known] if known else ports:
            if other is not port:
                other.send(frame)
