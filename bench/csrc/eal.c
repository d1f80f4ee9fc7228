/* EAL start and heap accounting. Called once, from one thread, before anything else here. */
#include <errno.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_malloc.h>
#include <rte_memory.h>
#include <rte_version.h>

/* Starts the EAL; 0, or the negative of rte_errno. */
int hb_eal_init(int argc, char **argv)
{
	int rc = rte_eal_init(argc, argv);
	return rc < 0 ? -rte_errno : 0;
}

/* Bytes now allocated from DPDK's heap (rte_malloc, memzones and pools included). */
uint64_t hb_heap_bytes(void)
{
	struct rte_malloc_socket_stats stats;
	memset(&stats, 0, sizeof(stats));
	if (rte_malloc_get_socket_stats(0, &stats) < 0)
		return 0;
	return stats.heap_allocsz_bytes;
}

/* Page size in bytes that the heap's memory really has. */
static int page(const struct rte_memseg_list *list, void *size)
{
	if (!list->external && list->memseg_arr.count > 0)
		*(uint64_t *)size = list->page_sz;
	return 0;
}

uint64_t hb_page_bytes(void)
{
	uint64_t size = 0;
	rte_memseg_list_walk(page, &size);
	return size;
}
