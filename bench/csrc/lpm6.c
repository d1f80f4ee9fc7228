/* rte_lpm6: creation, insertion, single and bulk lookups. Its lookups are library functions, not inline. */
#include <stdint.h>
#include <stddef.h>

#include <rte_lpm6.h>

struct rte_lpm6 *hb_lpm6_new(const char *name, uint32_t rules, uint32_t tbl8s)
{
	struct rte_lpm6_config config = { .max_rules = rules, .number_tbl8s = tbl8s, .flags = 0 };
	return rte_lpm6_create(name, 0, &config);
}

void hb_lpm6_free(struct rte_lpm6 *lpm) { rte_lpm6_free(lpm); }

int hb_lpm6_add(struct rte_lpm6 *lpm, const uint8_t *addr, uint8_t len, uint32_t hop)
{
	return rte_lpm6_add(lpm, addr, len, hop);
}

/* Answers are negative where there is no route. */
void hb_lpm6_bulk(struct rte_lpm6 *lpm, uint8_t (*keys)[16], size_t n, int32_t *out, size_t step, unsigned batch)
{
	for (size_t i = 0; i < n; i += batch, out += step)
		rte_lpm6_lookup_bulk_func(lpm, keys + i, out, batch);
}

/* A table a key: the only way the library has. */
void hb_lpm6_single(struct rte_lpm6 *const *lpms, const uint16_t *nets, uint8_t (*keys)[16], size_t n, int32_t *out,
	size_t step)
{
	for (size_t i = 0; i < n; i += 64, out += step)
		for (unsigned j = 0; j < 64; j++) {
			uint32_t hop = 0;
			out[j] = rte_lpm6_lookup(lpms[nets[i + j]], keys[i + j], &hop) == 0 ? (int32_t)hop : -1;
		}
}
