// The part of the kernel's stable interface that the programs of this folder need. Like spec/xdp, it does not use the kernel's
// and libbpf's headers. Source: Linux include/uapi/linux/bpf.h.

#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long s64;

#define SEC(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))
#define unlikely(x) __builtin_expect(!!(x), 0)
// Map definitions that the loader reads from the type information.
#define UINT(name, value) int(*name)[value]
#define TYPE(name, value) value *name

enum {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LPM_TRIE = 11,
	BPF_MAP_TYPE_DEVMAP = 14,
	BPF_MAP_TYPE_XSKMAP = 17
};
enum { BPF_F_NO_PREALLOC = 1 };
enum { XDP_DROP = 1, XDP_PASS = 2 };

struct xdp_md {
	u32 data;
	u32 data_end;
	u32 data_meta;
	u32 ingress_ifindex;
	u32 rx_queue_index;
	u32 egress_ifindex;
};

enum { TC_NEXT = -1, TC_DROP = 2 };

// The beginning of struct __sk_buff.
struct sk_buff_context {
	u32 before[19];
	u32 data;
	u32 data_end;
};

static void *(*map_lookup)(void *map, const void *key) = (void *)1;
static u64 (*ktime_get_ns)(void) = (void *)5;
static long (*redirect)(u32 interface, u64 flags) = (void *)23;
static long (*redirect_map)(void *map, u64 key, u64 flags) = (void *)51;

#define NETWORKS 256 // networks that a measurement distinguishes
#define FRAME_BYTES 60 // the part of a frame that templates set: all of the shortest one

// What stands before the generator's frame in a tunnel, in place of its Ethernet header or before it, and how much of the whole a
// template sets then.
enum { IN_IPIP = 20, IN_VXLAN = 50 };
enum { IPIP_BYTES = 80, VXLAN_BYTES = 108 };

// Offsets of the fields in a frame of the generator, bytes from its start; the UDP payload begins at 42.
enum { AT_TTL = 22, AT_MAGIC = 42, AT_NETWORK = 44, AT_STAMP = 48 };
// The same with IPv6, whose shortest frame has neither a UDP header nor room for a timestamp.
enum { AT_HOP_LIMIT = 21, AT_MAGIC6 = 54, AT_NETWORK6 = 56 };
#define MAGIC 0x4855 // as it lies in memory
