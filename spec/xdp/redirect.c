// The XDP program on an interface of a network whose plane is a program: passes frames to the program's AF_XDP socket, and to Linux
// while there is none.
//
// Flow: hueplane writes to the interface → here → ring of the socket → the network's program, which has put its socket into the map.
// Source: Linux Documentation/networking/af_xdp.rst.

#include "abi.h"

// Interfaces of networks have one queue.
struct {
	UINT(type, BPF_MAP_TYPE_XSKMAP);
	UINT(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, u32);
} SOCKETS SEC(".maps");

SEC("xdp")
int redirect(struct xdp_md *context)
{
	return redirect_map(&SOCKETS, context->rx_queue_index, XDP_PASS);
}

char licence[] SEC("license") = "Apache-2.0";
