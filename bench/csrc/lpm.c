/*
 * rte_lpm: direct filling of its public tables, and its inline lookups in each mode.
 *
 * Every lookup function works through n keys (a multiple of 64) in batches; `out` advances by `step` answers a batch,
 * so that step 0 (timing) reuses one cached buffer as a forwarder would, and step = batch (checking) keeps all.
 * Answers stay in the library's own format; `LPM_NONE` where the mode itself decides.
 */
#include <stdint.h>
#include <stddef.h>
#include <string.h>

#include <rte_lpm.h>
#include <rte_prefetch.h>

#define LPM_NONE 0xFFFFu
#define MAX_BATCH 64

struct rte_lpm *hb_lpm_new(const char *name, uint32_t rules, uint32_t tbl8s)
{
	struct rte_lpm_config config = { .max_rules = rules, .number_tbl8s = tbl8s, .flags = 0 };
	return rte_lpm_create(name, 0, &config);
}

void hb_lpm_free(struct rte_lpm *lpm) { rte_lpm_free(lpm); }

int hb_lpm_add(struct rte_lpm *lpm, uint32_t addr, uint8_t len, uint32_t hop)
{
	return rte_lpm_add(lpm, addr, len, hop);
}

/* Back to a table without routes. */
void hb_lpm_clear(struct rte_lpm *lpm, uint32_t tbl8s)
{
	memset(lpm->tbl24, 0, sizeof(lpm->tbl24));
	memset(lpm->tbl8, 0, (size_t)tbl8s * RTE_LPM_TBL8_GROUP_NUM_ENTRIES * sizeof(lpm->tbl8[0]));
}

/* Writes `count` entries of a table from `first` on. */
static void paint(struct rte_lpm_tbl_entry *table, uint32_t first, uint32_t count, struct rte_lpm_tbl_entry entry)
{
	for (uint32_t i = 0; i < count; i++)
		table[first + i] = entry;
}

/*
 * Fills tbl24 and tbl8 as rte_lpm_add would have left them, without its rule list (which is what makes it slow).
 * Routes come sorted by (address, length), so a covering route is painted before what it covers.
 * Returns the number of tbl8 groups used, or -1 when there are too few.
 */
int hb_lpm_fill(struct rte_lpm *lpm, uint32_t tbl8s, const uint32_t *addr, const uint8_t *len, const uint16_t *hop,
	size_t n)
{
	uint32_t groups = 0;
	for (size_t i = 0; i < n; i++) {
		struct rte_lpm_tbl_entry entry = { .next_hop = hop[i], .valid = 1, .valid_group = 0, .depth = len[i] };
		uint32_t index = addr[i] >> 8;
		if (len[i] == 0)
			continue; /* rte_lpm has no default route */
		if (len[i] <= 24) {
			paint(lpm->tbl24, index, 1u << (24 - len[i]), entry);
			continue;
		}
		entry.valid_group = 1;
		if (!(lpm->tbl24[index].valid && lpm->tbl24[index].valid_group)) {
			struct rte_lpm_tbl_entry inherited = lpm->tbl24[index];
			struct rte_lpm_tbl_entry group = { .next_hop = groups, .valid = 1, .valid_group = 1, .depth = 0 };
			if (groups == tbl8s)
				return -1;
			inherited.valid_group = 1;
			paint(lpm->tbl8, groups * RTE_LPM_TBL8_GROUP_NUM_ENTRIES, RTE_LPM_TBL8_GROUP_NUM_ENTRIES, inherited);
			lpm->tbl24[index] = group;
			groups++;
		}
		paint(lpm->tbl8, lpm->tbl24[index].next_hop * RTE_LPM_TBL8_GROUP_NUM_ENTRIES + (addr[i] & 0xFF),
			1u << (32 - len[i]), entry);
	}
	return (int)groups;
}

/* Whether both tables answer alike for all of tbl24 and the tbl8 groups in use, field by field. */
int hb_lpm_same(const struct rte_lpm *a, const struct rte_lpm *b)
{
	for (uint32_t i = 0; i < RTE_LPM_TBL24_NUM_ENTRIES; i++) {
		struct rte_lpm_tbl_entry x = a->tbl24[i], y = b->tbl24[i];
		if (x.valid != y.valid || x.valid_group != y.valid_group)
			return 0;
		if (!x.valid)
			continue;
		if (!x.valid_group) {
			if (x.next_hop != y.next_hop || x.depth != y.depth)
				return 0;
			continue;
		}
		for (uint32_t j = 0; j < RTE_LPM_TBL8_GROUP_NUM_ENTRIES; j++) {
			struct rte_lpm_tbl_entry p = a->tbl8[x.next_hop * RTE_LPM_TBL8_GROUP_NUM_ENTRIES + j];
			struct rte_lpm_tbl_entry q = b->tbl8[y.next_hop * RTE_LPM_TBL8_GROUP_NUM_ENTRIES + j];
			if (p.valid != q.valid || (p.valid && (p.next_hop != q.next_hop || p.depth != q.depth)))
				return 0;
		}
	}
	return 1;
}

void hb_lpm_single(struct rte_lpm *const *lpms, const uint16_t *nets, const uint32_t *keys, size_t n, uint32_t *out,
	size_t step)
{
	for (size_t i = 0; i < n; i += 64, out += step) {
		for (unsigned j = 0; j < 64; j++) {
			uint32_t hop = 0;
			out[j] = rte_lpm_lookup(lpms[nets[i + j]], keys[i + j], &hop) == 0 ? hop : LPM_NONE;
		}
		__asm__ volatile("" ::: "memory");
	}
}

void hb_lpm_x4(struct rte_lpm *const *lpms, const uint16_t *nets, const uint32_t *keys, size_t n, uint32_t *out,
	size_t step)
{
	const struct rte_lpm *lpm = lpms[0];
	(void)nets;
	for (size_t i = 0; i < n; i += 64, out += step) {
		for (unsigned j = 0; j < 64; j += 4)
			rte_lpm_lookupx4(lpm, _mm_loadu_si128((const __m128i *)(keys + i + j)), out + j, LPM_NONE);
		__asm__ volatile("" ::: "memory");
	}
}

/* Native answers: bit 24 says hit. */
void hb_lpm_bulk32(struct rte_lpm *const *lpms, const uint16_t *nets, const uint32_t *keys, size_t n, uint32_t *out,
	size_t step)
{
	const struct rte_lpm *lpm = lpms[0];
	(void)nets;
	for (size_t i = 0; i < n; i += 32, out += step) {
		rte_lpm_lookup_bulk(lpm, keys + i, out, 32);
		__asm__ volatile("" ::: "memory");
	}
}

/* One lookup from a tbl24 entry already read. */
static inline uint32_t finish(const struct rte_lpm *lpm, uint32_t entry, uint32_t key)
{
	if (unlikely((entry & RTE_LPM_VALID_EXT_ENTRY_BITMASK) == RTE_LPM_VALID_EXT_ENTRY_BITMASK))
		entry = *(const uint32_t *)&lpm->tbl8[(uint8_t)key + (entry & 0xFFFFFF) * RTE_LPM_TBL8_GROUP_NUM_ENTRIES];
	return entry & RTE_LPM_LOOKUP_SUCCESS ? entry & 0xFFFFFF : LPM_NONE;
}

/* A batch: prefetch every tbl24 entry, then every tbl8 entry that is needed, then answer. */
static __rte_always_inline void prefetched(struct rte_lpm *const *lpms, const uint16_t *nets, const uint32_t *keys,
	size_t n, uint32_t *out, size_t step, const unsigned batch)
{
	for (size_t i = 0; i < n; i += batch, out += step) {
		const uint32_t *at[MAX_BATCH];
		unsigned extended = 0;
		for (unsigned j = 0; j < batch; j++) {
			at[j] = (const uint32_t *)&lpms[nets[i + j]]->tbl24[keys[i + j] >> 8];
			rte_prefetch0(at[j]);
		}
		for (unsigned j = 0; j < batch; j++) {
			uint32_t entry = *at[j];
			out[j] = entry & RTE_LPM_LOOKUP_SUCCESS ? entry & 0xFFFFFF : LPM_NONE;
			if (unlikely((entry & RTE_LPM_VALID_EXT_ENTRY_BITMASK) == RTE_LPM_VALID_EXT_ENTRY_BITMASK)) {
				rte_prefetch0(&lpms[nets[i + j]]->tbl8[(uint8_t)keys[i + j] +
					(entry & 0xFFFFFF) * RTE_LPM_TBL8_GROUP_NUM_ENTRIES]);
				extended = 1;
			}
		}
		if (unlikely(extended))
			for (unsigned j = 0; j < batch; j++)
				out[j] = finish(lpms[nets[i + j]], *at[j], keys[i + j]);
		__asm__ volatile("" ::: "memory");
	}
}

void hb_lpm_prefetch32(struct rte_lpm *const *lpms, const uint16_t *nets, const uint32_t *keys, size_t n,
	uint32_t *out, size_t step)
{
	prefetched(lpms, nets, keys, n, out, step, 32);
}

void hb_lpm_prefetch64(struct rte_lpm *const *lpms, const uint16_t *nets, const uint32_t *keys, size_t n,
	uint32_t *out, size_t step)
{
	prefetched(lpms, nets, keys, n, out, step, 64);
}

/* Key i is answered while the entry of key i+24 is fetched; the key array has 64 readable entries past n. */
void hb_lpm_pipelined(struct rte_lpm *const *lpms, const uint16_t *nets, const uint32_t *keys, size_t n,
	uint32_t *out, size_t step)
{
	for (size_t i = 0; i < n; i += 64, out += step) {
		for (unsigned j = 0; j < 64; j++) {
			uint32_t hop = 0;
			rte_prefetch0(&lpms[nets[i + j + 24]]->tbl24[keys[i + j + 24] >> 8]);
			out[j] = rte_lpm_lookup(lpms[nets[i + j]], keys[i + j], &hop) == 0 ? hop : LPM_NONE;
		}
		__asm__ volatile("" ::: "memory");
	}
}
