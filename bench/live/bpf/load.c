// Generator and sink of the live measurements.
//
// Flow: `generate`, run by BPF_PROG_TEST_RUN in its live mode, writes a frame and passes it to the generator's wire → the
// forwarder under test → `sink`, on the wire's far end, checks, counts and drops. Both are so cheap that neither is the
// bottleneck, and the same for every contestant.
//
// The generator has two kinds of frames. Paced frames are sent at a rate, for all networks in turn; fillers use all remaining
// time (floods). With a rate of 0, paced frames are sent as fast as possible. A generator that was delayed does not catch up
// with a burst: frames that are more than LATE frames late are neither sent nor counted as sent.
// Frames return to the generator as the forwarder left them, so each is rewritten.

#include "abi.h"

#define LATE 64
#define FILLERS 256
#define BUCKETS 2304 // 64 to each power of two, nanoseconds

struct settings {
	u64 interface;		// where frames go
	u64 packets_per_second; // of paced frames; 0: no limit
	u64 paced;		// templates of paced frames, from 0
	u64 fillers;		// templates of fillers, from NETWORKS
	u64 stamped;		// paced frames contain a timestamp
	u64 inner;		// frames are in a tunnel: 0, IN_IPIP or IN_VXLAN
};

struct state {
	u64 start_ns;
	u64 done;
	u64 next_paced;
	u64 next_filler;
};

struct template {
	u64 network;
	u8 bytes[112];
};

struct expected {
	u64 ttl;
	u64 inner; // as in settings
};

#define MAP(name, kind, entries, content)          \
	struct {                                   \
		UINT(type, BPF_MAP_TYPE_##kind);   \
		UINT(max_entries, entries);        \
		TYPE(key, u32);                    \
		TYPE(value, content);              \
	} name SEC(".maps")

MAP(SETTINGS, ARRAY, 1, struct settings);
MAP(STATE, ARRAY, 1, struct state);
MAP(TEMPLATES, ARRAY, NETWORKS + FILLERS, struct template);
MAP(SENT, ARRAY, NETWORKS + 1, u64); // by network; then fillers
MAP(EXPECTED, ARRAY, 1, struct expected);
MAP(RECEIVED, PERCPU_ARRAY, NETWORKS + 1, u64); // by network; then invalid frames
MAP(LATENCY, PERCPU_ARRAY, BUCKETS, u64);

// The template of the next frame; -1: nothing is due.
INLINE int next_template(const struct settings *settings, struct state *state, u64 now_ns)
{
	if (settings->packets_per_second) {
		u64 due = (now_ns - state->start_ns) * settings->packets_per_second / 1000000000ull;
		if (due <= state->done) {
			if (!settings->fillers)
				return -1;
			u64 filler = state->next_filler + 1 < settings->fillers ? state->next_filler + 1 : 0;
			state->next_filler = filler;
			return NETWORKS + filler;
		}
		if (due - state->done > LATE)
			state->done = due - LATE;
		state->done++;
	}
	u64 paced = state->next_paced + 1 < settings->paced ? state->next_paced + 1 : 0;
	state->next_paced = paced;
	return paced;
}

SEC("xdp")
int generate(struct xdp_md *context)
{
	u8 *frame = (void *)(long)context->data;
	u32 zero = 0;
	struct settings *settings = map_lookup(&SETTINGS, &zero);
	struct state *state = map_lookup(&STATE, &zero);

	if (!settings || !state || frame + FRAME_BYTES > (u8 *)(long)context->data_end)
		return XDP_DROP;
	u64 now_ns = settings->packets_per_second || settings->stamped ? ktime_get_ns() : 0;
	if (!state->start_ns)
		state->start_ns = now_ns;
	int chosen = next_template(settings, state, now_ns);
	if (chosen < 0)
		return XDP_DROP;
	u32 which = chosen;
	struct template *template = map_lookup(&TEMPLATES, &which);
	if (!template)
		return XDP_DROP;
#pragma unroll
	for (int i = 0; i < FRAME_BYTES / 4; i++)
		((u32 *)frame)[i] = ((u32 *)template->bytes)[i];
	if (settings->inner == IN_VXLAN) {
		if (frame + VXLAN_BYTES > (u8 *)(long)context->data_end)
			return XDP_DROP;
#pragma unroll
		for (int i = FRAME_BYTES / 4; i < VXLAN_BYTES / 4; i++)
			((u32 *)frame)[i] = ((u32 *)template->bytes)[i];
		frame += IN_VXLAN;
	} else if (settings->inner == IN_IPIP) {
		if (frame + IPIP_BYTES > (u8 *)(long)context->data_end)
			return XDP_DROP;
#pragma unroll
		for (int i = FRAME_BYTES / 4; i < IPIP_BYTES / 4; i++)
			((u32 *)frame)[i] = ((u32 *)template->bytes)[i];
		frame += IN_IPIP;
	}
	if (settings->stamped && which < NETWORKS)
		*(u64 *)(frame + AT_STAMP) = now_ns;
	u32 network = which < NETWORKS ? template->network : NETWORKS;
	u64 *sent = map_lookup(&SENT, &network);
	if (sent)
		++*sent;
	return redirect(settings->interface, 0);
}

// 64 buckets to each power of two above 63; the inverse is in load.rs.
INLINE u32 bucket_of(u64 ns)
{
	if (ns < 64)
		return ns;
	u32 power = 6;
	u64 rest = ns;
	if (rest >> 22) {
		power += 16;
		rest >>= 16;
	}
	if (rest >> 14) {
		power += 8;
		rest >>= 8;
	}
	if (rest >> 10) {
		power += 4;
		rest >>= 4;
	}
	if (rest >> 8) {
		power += 2;
		rest >>= 2;
	}
	if (rest >> 7) {
		power += 1;
		rest >>= 1;
	}
	u32 bucket = (power - 5) * 64 + (rest & 63);
	return bucket < BUCKETS ? bucket : BUCKETS - 1;
}

// Whether an IPv4 header is as expected: TTL and checksum.
INLINE int valid_ipv4(const u8 *frame, u64 ttl)
{
	u32 sum = 0;

#pragma unroll
	for (int i = 0; i < 10; i++)
		sum += ((const u16 *)(frame + 14))[i];
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return frame[AT_TTL] == ttl && sum == 0xffff;
}

// Counts a frame with a mark.
INLINE void count(u32 network, int valid)
{
	if (!valid || network > NETWORKS)
		network = NETWORKS;
	u64 *received = map_lookup(&RECEIVED, &network);
	if (received)
		++*received;
}

// Checks and counts a frame; 0 if it is not one of the generator's.
INLINE int see(const u8 *frame, const u8 *end)
{
	u32 zero = 0;

	struct expected *expected = map_lookup(&EXPECTED, &zero);
	if (!expected)
		return 0;
	if (expected->inner == IN_VXLAN)
		frame += IN_VXLAN;
	else if (expected->inner == IN_IPIP)
		frame += IN_IPIP;
	if (frame + FRAME_BYTES > end)
		return 0;
	if (frame[12] == 0x86 && frame[13] == 0xdd && *(u16 *)(frame + AT_MAGIC6) == MAGIC) {
		count(*(u16 *)(frame + AT_NETWORK6), frame[AT_HOP_LIMIT] == expected->ttl);
		return 1;
	}
	if (*(u16 *)(frame + AT_MAGIC) != MAGIC)
		return 0;
	count(*(u16 *)(frame + AT_NETWORK), valid_ipv4(frame, expected->ttl));
	u64 stamp = *(u64 *)(frame + AT_STAMP);
	if (stamp) {
		u32 bucket = bucket_of(ktime_get_ns() - stamp);
		u64 *bucket_count = map_lookup(&LATENCY, &bucket);
		if (bucket_count)
			++*bucket_count;
	}
	return 1;
}

SEC("xdp")
int sink(struct xdp_md *context)
{
	const u8 *frame = (void *)(long)context->data;

	return see(frame, (void *)(long)context->data_end) ? XDP_DROP : XDP_PASS;
}

// The same at the network stack of a host: the frame is a socket buffer, as in a host's kernel.
SEC("classifier")
int sink_stack(struct sk_buff_context *context)
{
	const u8 *frame = (void *)(long)context->data;

	return see(frame, (void *)(long)context->data_end) ? TC_DROP : TC_NEXT;
}

char licence[] SEC("license") = "Apache-2.0";
