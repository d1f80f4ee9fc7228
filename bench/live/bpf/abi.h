// What the programs of this folder have in common, besides what they share with those of the product. Source: Linux
// include/uapi/linux/bpf.h.

#pragma once

#include "../../../spec/xdp/abi.h"

enum { TC_NEXT = -1, TC_DROP = 2 };

// The beginning of struct __sk_buff.
struct sk_buff_context {
	u32 before[19];
	u32 data;
	u32 data_end;
};

static long (*redirect)(u32 interface, u64 flags) = (void *)23;

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
