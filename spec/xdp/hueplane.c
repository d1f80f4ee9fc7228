// The XDP program of a port: finds the class of a frame, checks that its share of the receive ring has room, and passes the
// frame to the AF_XDP socket of its queue.
//
// Flow: driver → here → ring of the socket → worker. Isolation begins here: networks that share a port share its
// receive ring, so a frame enters the ring only while its class (network) has fewer than its quota of frames between
// here and the end of the worker's queues: admitted - consumed < quota. Frames above the quota are dropped and counted. An
// idle class takes nothing from the others; a flood fills only its own share.
//
// The class of a frame, as design select finds it: a group MAC is class 0's index (CLASS_GROUP in user space), then the
// destination MAC, then the virtual destination address, then the port's default; otherwise the frame has no class.
//
// Eight bytes of metadata before the frame give user space the class, and the frame's number among those admitted. Missing
// numbers are frames lost after admission (no free slot in the fill ring); user space counts them as consumed. One frame
// every PROBE_NS passes above the quota, so that a class whose whole quota was lost recovers, too.
//
// Each queue has its own counters and one CPU at a time, so nothing here waits. Every counter is an aligned 64-bit word;
// maps that user space accesses for every batch are mapped into it.
//
// Source: Linux Documentation/networking/af_xdp.rst.

#include "abi.h"

#define NETWORKS 4096 // classes 1 to 4095 are networks
#define CLASSES (NETWORKS + 1)
#define INDEX_GROUP 0 // frames to group addresses
#define CLASS_GROUP 0xffff
#define INDEX_OTHER NETWORKS // frames whose network is determined only behind the ring
#define CLASS_OTHER 0xfffe
#define QUEUES 64
#define SOURCES 1024 // buckets for the senders of group frames, by a hash of their MAC
#define PROBE_NS 50000000ull
#define META_MAGIC 0x4855 // "HU"
#define MICRO 1000ull	  // tokens of a packet

// The settings of a port.
struct settings {
	u64 flags;
	u64 default_class;
	u64 source_packets_per_second; // group frames of one sender; 0: no limit
	u64 source_burst_packets;
	u64 group_packets_per_second; // group frames of all senders, each queue
	u64 group_burst_packets;
};
enum {
	FLAG_CLASSES = 1,      // classes are set; otherwise every frame goes to the socket
	FLAG_MACS = 2,	       // the port has MAC rules
	FLAG_INNER = 4,	       // the port has rules by virtual destination address
	FLAG_DEFAULT = 8,      // the port has a default class
	FLAG_PASS_UNKNOWN = 16 // frames without a class go to the kernel
};

struct prefix {
	u32 bits;
	u8 address[4];
};

struct bucket {
	u64 tokens; // in 1/MICRO packets
	u64 time_ns;
};

struct meta {
	u16 magic;
	u16 class;
	u32 number;
};

enum { STAT_NOBODY, STAT_PASSED, STAT_NO_META, STAT_RUNT, STAT_COUNT = 8 };

struct {
	UINT(type, BPF_MAP_TYPE_XSKMAP);
	UINT(max_entries, QUEUES);
	TYPE(key, u32);
	TYPE(value, u32);
} SOCKETS SEC(".maps");

struct {
	UINT(type, BPF_MAP_TYPE_ARRAY);
	UINT(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, struct settings);
} SETTINGS SEC(".maps");

struct {
	UINT(type, BPF_MAP_TYPE_HASH);
	UINT(max_entries, 65536);
	UINT(map_flags, BPF_F_NO_PREALLOC);
	TYPE(key, u64); // the MAC's six bytes in the order on the wire, then two zero bytes
	TYPE(value, u64);
} MACS SEC(".maps");

struct {
	UINT(type, BPF_MAP_TYPE_LPM_TRIE);
	UINT(max_entries, 65536);
	UINT(map_flags, BPF_F_NO_PREALLOC);
	TYPE(key, struct prefix);
	TYPE(value, u64);
} INNER SEC(".maps");

struct {
	UINT(type, BPF_MAP_TYPE_ARRAY);
	UINT(max_entries, CLASSES);
	UINT(map_flags, BPF_F_MMAPABLE);
	TYPE(key, u32);
	TYPE(value, u64);
} QUOTAS SEC(".maps");

// The loader sizes these by the interface's queues: queue x CLASSES + class.
#define PER_QUEUE(name)                            \
	struct {                                   \
		UINT(type, BPF_MAP_TYPE_ARRAY);    \
		UINT(max_entries, CLASSES);        \
		UINT(map_flags, BPF_F_MMAPABLE);   \
		TYPE(key, u32);                    \
		TYPE(value, u64);                  \
	} name SEC(".maps")
PER_QUEUE(ADMITTED);
PER_QUEUE(CONSUMED);
PER_QUEUE(POLICED);
PER_QUEUE(PROBED);

struct {
	UINT(type, BPF_MAP_TYPE_ARRAY);
	UINT(max_entries, STAT_COUNT);
	UINT(map_flags, BPF_F_MMAPABLE);
	TYPE(key, u32);
	TYPE(value, u64);
} STATS SEC(".maps");

// Bucket SOURCES is that of all senders together.
struct {
	UINT(type, BPF_MAP_TYPE_ARRAY);
	UINT(max_entries, SOURCES + 1);
	TYPE(key, u32);
	TYPE(value, struct bucket);
} BUCKETS SEC(".maps");

INLINE void count(u32 which)
{
	u64 *stat = map_lookup(&STATS, &which);
	if (stat)
		__sync_fetch_and_add(stat, 1);
}

// Takes a packet's tokens from a bucket; 0 if it is empty. Two CPUs may take the same token: the limit is soft.
INLINE int take_token(u32 which, u64 now_ns, u64 packets_per_second, u64 burst_packets)
{
	struct bucket *bucket = map_lookup(&BUCKETS, &which);
	if (!bucket || !packets_per_second)
		return 1;
	u64 full = burst_packets * MICRO;
	u64 passed_us = (now_ns - bucket->time_ns) / 1000;
	u64 tokens = full;
	if (passed_us < 60000000)
		tokens = bucket->tokens + passed_us * packets_per_second * MICRO / 1000000;
	if (tokens > full)
		tokens = full;
	// The time advances by whole microseconds, so that no fraction is lost at high rates.
	bucket->time_ns = bucket->time_ns && passed_us < 60000000 ? bucket->time_ns + passed_us * 1000 : now_ns;
	if (tokens < MICRO) {
		bucket->tokens = tokens;
		return 0;
	}
	bucket->tokens = tokens - MICRO;
	return 1;
}

// Group frames: the limit of their sender, then that of all senders.
INLINE int group_is_within(const struct settings *settings, const u8 *frame)
{
	if (!settings->source_packets_per_second && !settings->group_packets_per_second)
		return 1;
	u64 now_ns = ktime_get_ns();
	u32 hash = 2166136261u;
#pragma unroll
	for (int i = 6; i < 12; i++)
		hash = (hash ^ frame[i]) * 16777619u;
	u32 source = (hash ^ (hash >> 15)) % SOURCES;
	if (!take_token(source, now_ns, settings->source_packets_per_second, settings->source_burst_packets))
		return 0;
	return take_token(SOURCES, now_ns, settings->group_packets_per_second, settings->group_burst_packets);
}

// Reads the IPv4 header at `packet`: 0 if it is truncated or not version 4. `payload` is 0 if the header's own length is
// invalid.
INLINE int ipv4(const u8 *packet, const u8 *end, u32 *destination, u8 *protocol, int *first, const u8 **payload)
{
	if (packet + 20 > end || packet[0] >> 4 != 4)
		return 0;
	__builtin_memcpy(destination, packet + 16, 4);
	*protocol = packet[9];
	*first = (packet[6] & 0x1f) == 0 && packet[7] == 0;
	u32 words = packet[0] & 15;
	*payload = words < 5 ? 0 : packet + words * 4;
	return 1;
}

// The address that determines a frame's network; 0 if it has none. The rules are those of crates/demux/src/inner.rs.
INLINE int inner_destination(const u8 *frame, const u8 *end, u32 *destination)
{
	u8 protocol;
	int first;
	const u8 *payload;
	if (frame[12] != 8 || frame[13] != 0)
		return 0;
	if (!ipv4(frame + 14, end, destination, &protocol, &first, &payload))
		return 0;
	if (protocol == 4) {
		if (!first || !payload)
			return 0;
		return ipv4(payload, end, destination, &protocol, &first, &payload);
	}
	if (protocol == 17 && first) {
		if (!payload || payload + 8 > end)
			return 0;
		if (payload[2] != (4789 >> 8) || payload[3] != (4789 & 255))
			return 1;
		// VXLAN: the flag for a valid VNI must be set, and an IPv4 frame must follow.
		const u8 *vxlan = payload + 8;
		if (vxlan + 8 + 14 > end || !(vxlan[0] & 8))
			return 0;
		const u8 *inner = vxlan + 8;
		if (inner[12] != 8 || inner[13] != 0)
			return 0;
		return ipv4(inner + 14, end, destination, &protocol, &first, &payload);
	}
	return 1;
}

// The class of a unicast frame; 0: none.
INLINE u32 class_of(const struct settings *settings, const u8 *frame, const u8 *end)
{
	if (settings->flags & FLAG_MACS) {
		u64 mac = 0;
		__builtin_memcpy(&mac, frame, 6);
		u64 *class = map_lookup(&MACS, &mac);
		if (class)
			return *class;
	}
	if (settings->flags & FLAG_INNER) {
		struct prefix key = {.bits = 32};
		u32 destination;
		if (inner_destination(frame, end, &destination)) {
			__builtin_memcpy(key.address, &destination, 4);
			u64 *class = map_lookup(&INNER, &key);
			if (class)
				return *class;
		}
	}
	return settings->flags & FLAG_DEFAULT ? settings->default_class : 0;
}

// Puts the metadata before the frame. A driver without room for it has no policing, which is counted.
INLINE void describe(struct xdp_md *context, u16 class, u32 number)
{
	if (adjust_meta(context, -(int)sizeof(struct meta))) {
		count(STAT_NO_META);
		return;
	}
	struct meta *meta = (void *)(long)context->data_meta;
	if ((void *)(meta + 1) > (void *)(long)context->data)
		return;
	meta->magic = META_MAGIC;
	meta->class = class;
	meta->number = number;
}

// Whether a class above its quota may still send one frame (see the head of this file).
INLINE int is_probe(u32 at)
{
	u64 *probed = map_lookup(&PROBED, &at);
	if (!probed)
		return 0;
	u64 now_ns = ktime_get_ns();
	if (now_ns - *probed < PROBE_NS)
		return 0;
	*probed = now_ns;
	return 1;
}

SEC("xdp")
int hueplane(struct xdp_md *context)
{
	const u8 *frame = (void *)(long)context->data;
	const u8 *end = (void *)(long)context->data_end;
	u32 queue = context->rx_queue_index;
	u32 zero = 0;
	const struct settings *settings = map_lookup(&SETTINGS, &zero);

	if (unlikely(frame + 14 > end)) {
		count(STAT_RUNT);
		return XDP_DROP;
	}
	if (unlikely(!settings))
		return XDP_DROP;
	if (!(settings->flags & FLAG_CLASSES))
		return redirect_map(&SOCKETS, queue, XDP_PASS);

	u32 class, index;
	if (frame[0] & 1) {
		class = CLASS_GROUP;
		index = INDEX_GROUP;
	} else {
		class = class_of(settings, frame, end);
		index = class == CLASS_OTHER ? INDEX_OTHER : class & (NETWORKS - 1);
		if (!class) {
			if (settings->flags & FLAG_PASS_UNKNOWN) {
				count(STAT_PASSED);
				return XDP_PASS;
			}
			count(STAT_NOBODY);
			return XDP_DROP;
		}
	}

	u64 *quota = map_lookup(&QUOTAS, &index);
	u32 at = queue * CLASSES + index;
	u64 *policed = map_lookup(&POLICED, &at);
	if (unlikely(!quota || !policed))
		return XDP_DROP;
	if (index == INDEX_GROUP && !group_is_within(settings, frame)) {
		__sync_fetch_and_add(policed, 1);
		return XDP_DROP;
	}
	if (!*quota) {
		describe(context, 0, 0);
		return redirect_map(&SOCKETS, queue, XDP_PASS);
	}
	u64 *admitted = map_lookup(&ADMITTED, &at);
	u64 *consumed = map_lookup(&CONSUMED, &at);
	if (unlikely(!admitted || !consumed))
		return XDP_DROP;
	// Signed: user space's count may be ahead for a moment.
	if ((s64)(*(volatile u64 *)admitted - *(volatile u64 *)consumed) >= (s64)*quota && !is_probe(at)) {
		__sync_fetch_and_add(policed, 1);
		return XDP_DROP;
	}
	u64 number = *admitted + 1;
	*(volatile u64 *)admitted = number;
	describe(context, class, number);
	return redirect_map(&SOCKETS, queue, XDP_PASS);
}

char licence[] SEC("license") = "Apache-2.0";
