/* pipe_cost: what a write and a read of some pages cost in pipe(2), by one thread that nobody disturbs.
 *
 *   pipe_cost PAGES DURATION_MS
 *
 * From how the cost grows with PAGES follows what one page costs: the kernel keeps two pages with each pipe (Linux 6.15 and later), so up
 * to two pages a pair copies alone; each page beyond is allocated, charged where the process is in a memory cgroup, and freed as well.
 * docs/REPRODUCING.md uses it. It shares no code with workloads/. Prints two numbers, the medians over batches of 64 pairs: ns a write,
 * ns a read. Exit status 2 for wrong arguments, 1 where a system call fails.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BATCH = 64, MAX_BATCHES = 1 << 20, MAX_PAGES = 256 };

static void die(const char *what)
{
	fprintf(stderr, "pipe_cost: %s: %s\n", what, strerror(errno));
	exit(1);
}

static double now_ns(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double median(double *values, size_t count)
{
	qsort(values, count, sizeof(*values), compare);
	return values[count / 2];
}

int main(int argc, char **argv)
{
	static double writes[MAX_BATCHES], reads[MAX_BATCHES];
	long value[2];
	if (argc != 3) {
		fprintf(stderr, "usage: pipe_cost PAGES DURATION_MS\n");
		return 2;
	}
	for (int i = 0; i < 2; i++) {
		char *end;
		value[i] = strtol(argv[i + 1], &end, 10);
		if (end == argv[i + 1] || *end != '\0' || value[i] < 1 || (i == 0 && value[i] > MAX_PAGES)) {
			fprintf(stderr, "pipe_cost: not a number, or too large: %s\n", argv[i + 1]);
			return 2;
		}
	}
	size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = (size_t)value[0] * page, batches = 0;
	int ends[2];
	char *memory = aligned_alloc(page, bytes);
	if (memory == NULL)
		die("memory");
	memset(memory, 1, bytes);
	if (pipe(ends) != 0)
		die("pipe");
	if (fcntl(ends[1], F_SETPIPE_SZ, (int)(MAX_PAGES * page)) < 0)
		die("F_SETPIPE_SZ");
	double over = now_ns() + (double)value[1] * 1e6;
	while ((now_ns() < over || batches == 0) && batches < MAX_BATCHES) {
		double writing = 0, reading = 0;
		for (int i = 0; i < BATCH; i++) {
			double begin = now_ns();
			if (write(ends[1], memory, bytes) != (ssize_t)bytes)
				die("write");
			double between = now_ns();
			if (read(ends[0], memory, bytes) != (ssize_t)bytes)
				die("read");
			reading += now_ns() - between;
			writing += between - begin;
		}
		writes[batches] = writing / BATCH;
		reads[batches++] = reading / BATCH;
	}
	printf("%.0f %.0f\n", median(writes, batches), median(reads, batches));
	return 0;
}
