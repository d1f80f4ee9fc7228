// The forwarder for decision 0009, an XDP fast path: routes whole packets in the driver, from one wire to another.
//
// Flow: driver → longest prefix of the destination → MACs, TTL, checksum in place → devmap → the other driver. It leaves out the
// functions on which the decision depends: selection of networks, limits, fair queues, counters by outcome, captures.

#include "abi.h"

struct prefix {
	u32 bits;
	u8 address[4];
};

struct hop {
	u8 macs[12]; // destination, source
	u32 port;    // index in PORTS
};

struct {
	UINT(type, BPF_MAP_TYPE_LPM_TRIE);
	UINT(max_entries, 4096);
	UINT(map_flags, BPF_F_NO_PREALLOC);
	TYPE(key, struct prefix);
	TYPE(value, struct hop);
} ROUTES SEC(".maps");

struct {
	UINT(type, BPF_MAP_TYPE_DEVMAP);
	UINT(max_entries, 8);
	TYPE(key, u32);
	TYPE(value, u32);
} PORTS SEC(".maps");

SEC("xdp")
int forward(struct xdp_md *context)
{
	u8 *frame = (void *)(long)context->data;

	if (frame + 34 > (u8 *)(long)context->data_end || frame[12] != 8 || frame[13] != 0 || frame[14] != 0x45)
		return XDP_PASS;
	u32 sum = 0;
#pragma unroll
	for (int i = 0; i < 10; i++)
		sum += ((u16 *)(frame + 14))[i];
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	if (frame[AT_TTL] <= 1 || sum != 0xffff)
		return XDP_PASS;
	struct prefix key = {.bits = 32};
	__builtin_memcpy(key.address, frame + 30, 4);
	struct hop *hop = map_lookup(&ROUTES, &key);
	if (!hop)
		return XDP_PASS;
	__builtin_memcpy(frame, hop->macs, 12);
	// RFC 1624: the TTL is the high byte of its word, so one less there is one more in the checksum.
	frame[AT_TTL]--;
	u16 *checksum = (u16 *)(frame + 24);
	u32 next = *checksum + 1; // 0x0100 in network order
	*checksum = (next & 0xffff) + (next >> 16);
	return redirect_map(&PORTS, hop->port, 0);
}

char licence[] SEC("license") = "Apache-2.0";
