/*
 * A DPDK router's inner loop over net_ring ports: receive burst, header checks, checksum, rte_lpm x4, rewrite, send
 * burst; no copies, one core, one table. The peer of the software plane, doing the same header work in the same order
 * (truncated, version, header length, total length, checksum, TTL, options, route, MTU) with a counter an outcome.
 */
#include <stdint.h>
#include <stddef.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_lpm.h>
#include <rte_mbuf.h>
#include <rte_prefetch.h>

#define BURST_MAX 256
#define NO_ROUTE 0xFFFFu

enum outcome {
	OUT_ETHERTYPE, OUT_TRUNCATED, OUT_VERSION, OUT_HEADER_LENGTH, OUT_TOTAL_LENGTH, OUT_CHECKSUM, OUT_TTL,
	OUT_OPTIONS, OUT_NO_ROUTE, OUT_MTU, OUT_FORWARD, OUT_COUNT
};

/* What a next hop rewrites: both MACs as they lie in the frame, and the MTU. */
struct hb_adjacency {
	uint8_t macs[12];
	uint16_t mtu;
	uint16_t port;
};

struct hb_ring {
	struct rte_mempool *pool;
	struct rte_ring *in, *out;
	uint16_t rx_port, tx_port;
	struct hb_adjacency adjacency[256];
	uint64_t counters[OUT_COUNT];
};

/* A port with one receive and one send queue, started. */
static int start(uint16_t port, struct rte_mempool *pool)
{
	struct rte_eth_conf conf;
	memset(&conf, 0, sizeof(conf));
	if (rte_eth_dev_configure(port, 1, 1, &conf) < 0 || rte_eth_rx_queue_setup(port, 0, 1024, 0, NULL, pool) < 0 ||
	    rte_eth_tx_queue_setup(port, 0, 1024, 0, NULL) < 0)
		return -1;
	return rte_eth_dev_start(port);
}

/* Two ports, p0 receiving from `in`, p1 sending to `out`; NULL with rte_errno set. `packets` below 65536. */
struct hb_ring *hb_ring_new(uint32_t packets)
{
	static struct hb_ring ring;
	struct rte_ring *unused;
	int rx, tx;
	memset(&ring, 0, sizeof(ring));
	ring.pool = rte_pktmbuf_pool_create("hb_pool", packets * 2, 256, 0, RTE_MBUF_DEFAULT_BUF_SIZE, 0);
	ring.in = rte_ring_create("hb_in", 65536, 0, RING_F_SP_ENQ | RING_F_SC_DEQ);
	ring.out = rte_ring_create("hb_out", 65536, 0, RING_F_SP_ENQ | RING_F_SC_DEQ);
	unused = rte_ring_create("hb_unused", 64, 0, RING_F_SP_ENQ | RING_F_SC_DEQ);
	if (!ring.pool || !ring.in || !ring.out || !unused)
		return NULL;
	rx = rte_eth_from_rings("hb_rx", &ring.in, 1, &unused, 1, 0);
	tx = rte_eth_from_rings("hb_tx", &unused, 1, &ring.out, 1, 0);
	if (rx < 0 || tx < 0 || start(rx, ring.pool) < 0 || start(tx, ring.pool) < 0)
		return NULL;
	ring.rx_port = (uint16_t)rx;
	ring.tx_port = (uint16_t)tx;
	return &ring;
}

void hb_ring_adjacency(struct hb_ring *ring, uint8_t hop, const uint8_t *macs, uint16_t mtu)
{
	memcpy(ring->adjacency[hop].macs, macs, 12);
	ring->adjacency[hop].mtu = mtu;
}

/* Fills the receive ring with n frames of `size` bytes; returns how many went in. Not timed. */
size_t hb_ring_load(struct hb_ring *ring, const uint8_t *frames, size_t size, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct rte_mbuf *m = rte_pktmbuf_alloc(ring->pool);
		if (!m)
			return i;
		memcpy(rte_pktmbuf_append(m, (uint16_t)size), frames + i * size, size);
		if (rte_ring_enqueue(ring->in, m) != 0) {
			rte_pktmbuf_free(m);
			return i;
		}
	}
	return n;
}

/* Empties the send ring into `frames` (or nowhere when NULL); returns how many came out. Not timed. */
size_t hb_ring_unload(struct hb_ring *ring, uint8_t *frames, size_t size, size_t n)
{
	size_t count = 0;
	void *m;
	while (rte_ring_dequeue(ring->out, &m) == 0) {
		if (frames && count < n)
			memcpy(frames + count * size, rte_pktmbuf_mtod((struct rte_mbuf *)m, uint8_t *), size);
		rte_pktmbuf_free(m);
		count++;
	}
	return count;
}

/* Everything before the lookup: the outcome, OUT_FORWARD where the packet goes on. */
static __rte_always_inline enum outcome check(const uint8_t *frame, uint32_t len)
{
	const struct rte_ether_hdr *eth = (const struct rte_ether_hdr *)frame;
	const struct rte_ipv4_hdr *ip = (const struct rte_ipv4_hdr *)(eth + 1);
	uint32_t header, total;
	if (unlikely(len < 14 || eth->ether_type != RTE_BE16(RTE_ETHER_TYPE_IPV4)))
		return OUT_ETHERTYPE;
	if (unlikely(len < 34))
		return OUT_TRUNCATED;
	if (unlikely((ip->version_ihl >> 4) != 4))
		return OUT_VERSION;
	header = (ip->version_ihl & 15u) * 4;
	if (unlikely(header < 20 || 14 + header > len))
		return OUT_HEADER_LENGTH;
	total = rte_be_to_cpu_16(ip->total_length);
	if (unlikely(total < header || 14 + total > len))
		return OUT_TOTAL_LENGTH;
	if (likely(header == 20)) {
		uint64_t sum = 0;
		for (unsigned i = 0; i < 5; i++) {
			uint32_t word;
			memcpy(&word, (const uint8_t *)ip + 4 * i, 4);
			sum += word;
		}
		sum = (sum & 0xFFFFFFFF) + (sum >> 32);
		sum = (sum & 0xFFFF) + (sum >> 16);
		sum = (sum & 0xFFFF) + (sum >> 16);
		sum = (sum & 0xFFFF) + (sum >> 16);
		if (unlikely(sum != 0xFFFF))
			return OUT_CHECKSUM;
	} else if (rte_raw_cksum(ip, header) != 0xFFFF) {
		return OUT_CHECKSUM;
	}
	if (unlikely(ip->time_to_live <= 1))
		return OUT_TTL;
	if (unlikely(header != 20))
		return OUT_OPTIONS;
	return OUT_FORWARD;
}

/* MACs, TTL, incremental checksum (RFC 1624, eqn. 3 with only the TTL byte changed: never leaves 0xFFFF). */
static __rte_always_inline void rewrite(uint8_t *frame, const struct hb_adjacency *to)
{
	struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(frame + 14);
	uint32_t sum = ip->hdr_checksum + RTE_BE16(0x0100);
	memcpy(frame, to->macs, 12);
	ip->time_to_live--;
	ip->hdr_checksum = (uint16_t)(sum + (sum >= 0xFFFF));
}

/* One burst of n mbufs: those to forward are packed into tx, the others freed; returns how many to send. */
static __rte_always_inline unsigned process(struct hb_ring *ring, const struct rte_lpm *lpm, struct rte_mbuf **pkts,
	unsigned n, struct rte_mbuf **tx)
{
	uint32_t dst[BURST_MAX + 4], hop[BURST_MAX + 4];
	uint8_t outcome[BURST_MAX];
	unsigned sent = 0, forward = 0;

	for (unsigned i = 0; i < n; i++)
		rte_prefetch0(rte_pktmbuf_mtod(pkts[i], void *));
	for (unsigned i = 0; i < n; i++) {
		const uint8_t *frame = rte_pktmbuf_mtod(pkts[i], const uint8_t *);
		uint32_t word = 0;
		outcome[i] = check(frame, rte_pktmbuf_data_len(pkts[i]));
		if (likely(outcome[i] == OUT_FORWARD))
			memcpy(&word, frame + 30, 4);
		dst[i] = rte_be_to_cpu_32(word);
	}
	for (unsigned i = n; i & 3; i++)
		dst[i] = 0;
	for (unsigned i = 0; i < n; i += 4)
		rte_lpm_lookupx4(lpm, _mm_loadu_si128((const __m128i *)(dst + i)), hop + i, NO_ROUTE);
	for (unsigned i = 0; i < n; i++) {
		const struct hb_adjacency *to;
		if (likely(outcome[i] == OUT_FORWARD)) {
			uint8_t *frame = rte_pktmbuf_mtod(pkts[i], uint8_t *);
			if (likely(hop[i] != NO_ROUTE)) {
				uint16_t total;
				memcpy(&total, frame + 16, 2);
				to = &ring->adjacency[hop[i] & 0xFF];
				if (likely(rte_be_to_cpu_16(total) <= to->mtu)) {
					rewrite(frame, to);
					tx[sent++] = pkts[i];
					forward++;
					continue;
				}
				outcome[i] = OUT_MTU;
			} else {
				outcome[i] = OUT_NO_ROUTE;
			}
		}
		ring->counters[outcome[i]]++;
		rte_pktmbuf_free(pkts[i]);
	}
	ring->counters[OUT_FORWARD] += forward;
	return sent;
}

/* Until the receive port is empty; returns packets received. Timed. */
size_t hb_ring_run(struct hb_ring *ring, const struct rte_lpm *lpm, uint16_t burst)
{
	struct rte_mbuf *pkts[BURST_MAX], *tx[BURST_MAX];
	size_t received = 0;
	for (;;) {
		unsigned n = rte_eth_rx_burst(ring->rx_port, 0, pkts, burst);
		unsigned send;
		if (n == 0)
			return received;
		received += n;
		send = process(ring, lpm, pkts, n, tx);
		if (likely(send > 0)) {
			unsigned done = rte_eth_tx_burst(ring->tx_port, 0, tx, (uint16_t)send);
			while (unlikely(done < send))
				rte_pktmbuf_free(tx[done++]);
		}
	}
}

/* The ports alone: receive burst, send burst, nothing between. Timed. */
size_t hb_ring_idle(struct hb_ring *ring, uint16_t burst)
{
	struct rte_mbuf *pkts[BURST_MAX];
	size_t received = 0;
	for (;;) {
		unsigned n = rte_eth_rx_burst(ring->rx_port, 0, pkts, burst), done;
		if (n == 0)
			return received;
		received += n;
		done = rte_eth_tx_burst(ring->tx_port, 0, pkts, (uint16_t)n);
		while (unlikely(done < n))
			rte_pktmbuf_free(pkts[done++]);
	}
}

void hb_ring_counters(const struct hb_ring *ring, uint64_t *out, size_t n)
{
	for (size_t i = 0; i < n && i < OUT_COUNT; i++)
		out[i] = ring->counters[i];
}

/*
 * For another plane on the same ports: the memory that all frames lie in; a burst received, each frame as an offset
 * into that memory and its length; and handing each packet on or back.
 */
int hb_ring_arena(struct hb_ring *ring, uint8_t **base, size_t *len)
{
	const struct rte_mempool_memhdr *chunk = STAILQ_FIRST(&ring->pool->mem_list);
	if (ring->pool->nb_mem_chunks != 1 || chunk->len > UINT32_MAX)
		return -1;
	*base = chunk->addr;
	*len = chunk->len;
	return 0;
}

unsigned hb_ring_receive(struct hb_ring *ring, const uint8_t *base, struct rte_mbuf **pkts, uint32_t *starts,
	uint32_t *lens, uint16_t burst)
{
	unsigned n = rte_eth_rx_burst(ring->rx_port, 0, pkts, burst);
	for (unsigned i = 0; i < n; i++) {
		const uint8_t *frame = rte_pktmbuf_mtod(pkts[i], const uint8_t *);
		rte_prefetch0(frame);
		starts[i] = (uint32_t)(frame - base);
		lens[i] = rte_pktmbuf_data_len(pkts[i]);
	}
	return n;
}

void hb_ring_send(struct hb_ring *ring, struct rte_mbuf **pkts, const uint8_t *forward, unsigned n)
{
	struct rte_mbuf *tx[BURST_MAX];
	unsigned send = 0, done;
	for (unsigned i = 0; i < n; i++) {
		if (likely(forward[i]))
			tx[send++] = pkts[i];
		else
			rte_pktmbuf_free(pkts[i]);
	}
	done = rte_eth_tx_burst(ring->tx_port, 0, tx, (uint16_t)send);
	while (unlikely(done < send))
		rte_pktmbuf_free(tx[done++]);
}
