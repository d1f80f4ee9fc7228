// The XDP program on an interface of a network whose plane is a program: passes frames to the program's AF_XDP socket, and to Linux
// while there is none.
//
// Flow: hueplane writes to the interface → here → ring of the socket → the network's program, which has put its socket into the map.
//
// It does not use the kernel's and libbpf's headers: the needed part of the stable ABI is below.
// Source: Linux Documentation/networking/af_xdp.rst, include/uapi/linux/bpf.h.

typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))
// Map definitions that the loader reads from the type information.
#define UINT(name, value) int(*name)[value]
#define TYPE(name, value) value *name

enum { BPF_MAP_TYPE_XSKMAP = 17 };
enum { XDP_PASS = 2 };

struct xdp_md {
	u32 data;
	u32 data_end;
	u32 data_meta;
	u32 ingress_ifindex;
	u32 rx_queue_index;
	u32 egress_ifindex;
};

static long (*redirect_map)(void *map, u64 key, u64 flags) = (void *)51;

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
