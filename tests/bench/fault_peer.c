/* fault_peer: touches anonymous memory for the first time, page by page, and prints how fast.
 *
 *   fault_peer REGION_BYTES WARMUP_MS DURATION_MS
 *
 * The independent measurement that fault on target kernel is held against. It shares no code with workloads/, and it is kept as plain as
 * it can be: map a region without huge pages, write one byte of each of its pages, unmap it, again. Mapping and unmapping are not timed.
 * Passes that begin during the warm-up are not counted; at least one is. Prints one number: pages a second. Exit status 2 for wrong
 * arguments, 1 where a system call fails.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static void die(const char *what)
{
	fprintf(stderr, "fault_peer: %s: %s\n", what, strerror(errno));
	exit(1);
}

static double now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Seconds that the touches of one pass took. */
static double touch(size_t bytes, size_t page)
{
	char *region = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (region == MAP_FAILED)
		die("mmap");
	if (madvise(region, bytes, MADV_NOHUGEPAGE) != 0)
		die("MADV_NOHUGEPAGE");
	double begin = now();
	for (size_t at = 0; at < bytes; at += page)
		*(volatile char *)(region + at) = 1;
	double seconds = now() - begin;
	if (munmap(region, bytes) != 0)
		die("munmap");
	return seconds;
}

int main(int argc, char **argv)
{
	long value[3];
	if (argc != 4) {
		fprintf(stderr, "usage: fault_peer REGION_BYTES WARMUP_MS DURATION_MS\n");
		return 2;
	}
	for (int i = 0; i < 3; i++) {
		char *end;
		value[i] = strtol(argv[i + 1], &end, 10);
		if (end == argv[i + 1] || *end != '\0' || value[i] < (i == 1 ? 0 : 1)) {
			fprintf(stderr, "fault_peer: not a number: %s\n", argv[i + 1]);
			return 2;
		}
	}
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t bytes = ((size_t)value[0] + page - 1) / page * page;
	double begin = now(), warm = begin + (double)value[1] / 1e3, over = warm + (double)value[2] / 1e3;
	double seconds = 0, pages = 0;
	do {
		int counts = now() >= warm;
		double took = touch(bytes, page);
		if (counts) {
			seconds += took;
			pages += (double)(bytes / page);
		}
	} while (now() < over || pages == 0);
	printf("%.0f\n", pages / seconds);
	return 0;
}
