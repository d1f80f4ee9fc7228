/* rte_fib (dir24_8) and rte_fib6 (trie): creation, insertion, bulk lookups. Answers are 64-bit, as the library gives. */
#include <stdint.h>
#include <stddef.h>

#include <rte_fib.h>
#include <rte_fib6.h>

/* wide: 4-byte next hops, else 2-byte; vector: 1 asks for AVX-512. NULL when the library has none. */
struct rte_fib *hb_fib_new(const char *name, int routes, uint32_t tbl8s, int wide, uint64_t miss)
{
	struct rte_fib_conf conf = { .type = RTE_FIB_DIR24_8, .default_nh = miss, .max_routes = routes, .rib_ext_sz = 0 };
	conf.dir24_8.nh_sz = wide ? RTE_FIB_DIR24_8_4B : RTE_FIB_DIR24_8_2B;
	conf.dir24_8.num_tbl8 = tbl8s;
	return rte_fib_create(name, 0, &conf);
}

int hb_fib_vector(struct rte_fib *fib, int vector)
{
	return rte_fib_select_lookup(fib,
		vector ? RTE_FIB_LOOKUP_DIR24_8_VECTOR_AVX512 : RTE_FIB_LOOKUP_DIR24_8_SCALAR_MACRO);
}

void hb_fib_free(struct rte_fib *fib) { rte_fib_free(fib); }

int hb_fib_add(struct rte_fib *fib, uint32_t addr, uint8_t len, uint64_t hop)
{
	return rte_fib_add(fib, addr, len, hop);
}

void hb_fib_bulk(struct rte_fib *fib, uint32_t *keys, size_t n, uint64_t *out, size_t step, unsigned batch)
{
	for (size_t i = 0; i < n; i += batch, out += step)
		rte_fib_lookup_bulk(fib, keys + i, out, (int)batch);
}

struct rte_fib6 *hb_fib6_new(const char *name, int routes, uint32_t tbl8s, int wide, uint64_t miss)
{
	struct rte_fib6_conf conf = { .type = RTE_FIB6_TRIE, .default_nh = miss, .max_routes = routes, .rib_ext_sz = 0 };
	conf.trie.nh_sz = wide ? RTE_FIB6_TRIE_4B : RTE_FIB6_TRIE_2B;
	conf.trie.num_tbl8 = tbl8s;
	return rte_fib6_create(name, 0, &conf);
}

int hb_fib6_vector(struct rte_fib6 *fib, int vector)
{
	return rte_fib6_select_lookup(fib, vector ? RTE_FIB6_LOOKUP_TRIE_VECTOR_AVX512 : RTE_FIB6_LOOKUP_TRIE_SCALAR);
}

void hb_fib6_free(struct rte_fib6 *fib) { rte_fib6_free(fib); }

int hb_fib6_add(struct rte_fib6 *fib, const uint8_t *addr, uint8_t len, uint64_t hop)
{
	return rte_fib6_add(fib, addr, len, hop);
}

void hb_fib6_bulk(struct rte_fib6 *fib, uint8_t (*keys)[16], size_t n, uint64_t *out, size_t step, unsigned batch)
{
	for (size_t i = 0; i < n; i += batch, out += step)
		rte_fib6_lookup_bulk(fib, keys + i, out, (int)batch);
}
