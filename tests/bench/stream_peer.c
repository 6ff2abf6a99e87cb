/* stream_peer: goes through arrays of doubles as STREAM does, and prints how fast.
 *
 *   stream_peer read|copy|memcpy|triad REGION_BYTES WARMUP_MS DURATION_MS
 *
 * The independent measurement that bandwidth on target kernel is held against. It shares no code with workloads/, and its loops are the
 * plain ones that a textbook has, for the compiler to make the best of; only that it may not replace copy by a call, which is memcpy's
 * row: libc's stores go past the caches. The region is cut into as many arrays as the operation has. Bytes are counted as STREAM counts
 * them: each element that is read or written, once. Passes that begin during the warm-up are not counted; at least one is. Prints one
 * number: bytes a second. Exit status 2 for wrong arguments, 1 where the memory cannot be had.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

static volatile uint64_t result;

static double now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static __attribute__((noinline)) void read_all(const uint64_t *a, size_t n)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < n; i++)
		sum += a[i];
	result = sum;
}

static __attribute__((noinline)) void copy(double *restrict a, const double *restrict b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		a[i] = b[i];
}

static __attribute__((noinline)) void triad(double *restrict a, const double *restrict b, const double *restrict c, size_t n)
{
	for (size_t i = 0; i < n; i++)
		a[i] = b[i] + 3.0 * c[i];
}

int main(int argc, char **argv)
{
	static const char *const names[] = { "read", "copy", "memcpy", "triad" };
	static const size_t arrays_of[] = { 1, 2, 2, 3 };
	size_t kind = 0;
	long value[3];
	if (argc != 5) {
		fprintf(stderr, "usage: stream_peer read|copy|memcpy|triad REGION_BYTES WARMUP_MS DURATION_MS\n");
		return 2;
	}
	while (kind < 4 && strcmp(argv[1], names[kind]) != 0)
		kind++;
	if (kind == 4) {
		fprintf(stderr, "stream_peer: no such operation: %s\n", argv[1]);
		return 2;
	}
	for (int i = 0; i < 3; i++) {
		char *end;
		value[i] = strtol(argv[i + 2], &end, 10);
		if (end == argv[i + 2] || *end != '\0' || value[i] < (i == 1 ? 0 : 1)) {
			fprintf(stderr, "stream_peer: not a number: %s\n", argv[i + 2]);
			return 2;
		}
	}
	size_t n = (size_t)value[0] / arrays_of[kind] / sizeof(double);
	size_t bytes = n * arrays_of[kind] * sizeof(double);
	double *a = n == 0 ? MAP_FAILED : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (a == MAP_FAILED) {
		fprintf(stderr, "stream_peer: %ld bytes: %s\n", value[0], n == 0 ? "too few" : strerror(errno));
		return 1;
	}
	for (size_t i = 0; i < n * arrays_of[kind]; i++)
		a[i] = 1;
	double warm = now() + (double)value[1] / 1e3, over = warm + (double)value[2] / 1e3;
	double seconds = 0, moved = 0;
	do {
		double begin = now();
		if (kind == 0)
			read_all((const uint64_t *)(const void *)a, n);
		else if (kind == 1)
			copy(a, a + n, n);
		else if (kind == 2)
			memcpy(a, a + n, n * sizeof(double));
		else
			triad(a, a + n, a + 2 * n, n);
		/* The arrays are looked at: no pass may be left out. */
		__asm__ volatile("" : : "r"(a) : "memory");
		if (begin >= warm) {
			seconds += now() - begin;
			moved += (double)bytes;
		}
	} while (now() < over || moved == 0);
	printf("%.0f\n", moved / seconds);
	return 0;
}
