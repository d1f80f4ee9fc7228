// A socket for each network on one queue: the alternative that decision 0007 rejected, to compare it with the chosen one.
//
// Flow: driver → destination MAC → network → that network's AF_XDP socket. Frames without a rule are dropped.

#include "abi.h"

struct {
	UINT(type, BPF_MAP_TYPE_HASH);
	UINT(max_entries, 4096);
	UINT(map_flags, BPF_F_NO_PREALLOC);
	TYPE(key, u64); // the MAC's six bytes as they are sent, then two zero bytes
	TYPE(value, u32);
} MACS SEC(".maps");

struct {
	UINT(type, BPF_MAP_TYPE_XSKMAP);
	UINT(max_entries, NETWORKS);
	TYPE(key, u32);
	TYPE(value, u32);
} SOCKETS SEC(".maps");

SEC("xdp")
int sockets(struct xdp_md *context)
{
	const u8 *frame = (void *)(long)context->data;

	if (frame + 14 > (u8 *)(long)context->data_end)
		return XDP_DROP;
	u64 mac = 0;
	__builtin_memcpy(&mac, frame, 6);
	u32 *network = map_lookup(&MACS, &mac);
	if (!network)
		return XDP_DROP;
	return redirect_map(&SOCKETS, *network, XDP_DROP);
}

char licence[] SEC("license") = "Apache-2.0";
