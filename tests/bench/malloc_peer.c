/* malloc_peer: times malloc and free of SIZE bytes and prints nanoseconds a pair.
 *
 *   malloc_peer SIZE pair|batch
 *
 * batch: 64 allocations, then 64 frees. The allocator is glibc's, or another's by LD_PRELOAD. As engine_bench does, the median over 101
 * chunks of 16,384 pairs. Exit status 2 for wrong arguments, 1 where memory ends.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BATCH = 64, CHUNK = 1 << 14, CHUNKS = 101 };

static void *allocate(size_t size)
{
	void *memory = malloc(size);
	if (memory == NULL)
		exit(1);
	/* The compiler must not drop the pair. */
	__asm__ volatile("" : "+r"(memory) : : "memory");
	return memory;
}

static void chunk(size_t size, int is_batch)
{
	void *items[BATCH];
	if (!is_batch) {
		for (int i = 0; i < CHUNK; ++i)
			free(allocate(size));
		return;
	}
	for (int i = 0; i < CHUNK; i += BATCH) {
		for (int j = 0; j < BATCH; ++j)
			items[j] = allocate(size);
		for (int j = 0; j < BATCH; ++j)
			free(items[j]);
	}
}

static double now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	double times[CHUNKS];
	if (argc != 3 || (strcmp(argv[2], "pair") != 0 && strcmp(argv[2], "batch") != 0) || atoi(argv[1]) <= 0) {
		fprintf(stderr, "usage: malloc_peer SIZE pair|batch\n");
		return 2;
	}
	for (int i = 0; i < CHUNKS; ++i) {
		const double begin = now();
		chunk((size_t)atoi(argv[1]), strcmp(argv[2], "batch") == 0);
		times[i] = (now() - begin) / CHUNK;
	}
	qsort(times, CHUNKS, sizeof(*times), ascending);
	printf("%.9g\n", times[CHUNKS / 2]);
	return 0;
}
