// The part of the kernel's stable interface to BPF programs that those of this folder and of bench/live need. They do not use the
// kernel's and libbpf's headers. Source: Linux include/uapi/linux/bpf.h.

#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long s64;

#define SEC(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))
#define likely(x) __builtin_expect(!!(x), 1)
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
enum { BPF_F_NO_PREALLOC = 1, BPF_F_MMAPABLE = 1 << 10 };
enum { XDP_DROP = 1, XDP_PASS = 2 };

struct xdp_md {
	u32 data;
	u32 data_end;
	u32 data_meta;
	u32 ingress_ifindex;
	u32 rx_queue_index;
	u32 egress_ifindex;
};

static void *(*map_lookup)(void *map, const void *key) = (void *)1;
static u64 (*ktime_get_ns)(void) = (void *)5;
static long (*redirect_map)(void *map, u64 key, u64 flags) = (void *)51;
static long (*adjust_meta)(struct xdp_md *context, int delta) = (void *)54;
