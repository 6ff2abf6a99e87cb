/* pipe_peer: moves messages through one pipe(2) with some writers and readers, and prints how fast.
 *
 *   pipe_peer WRITERS READERS MESSAGE_BYTES PIPE_BYTES WARMUP_MS DURATION_MS
 *
 * The independent measurement that transfer on target kernel is held against. It shares no code with workloads/, and it is kept as
 * plain as it can be: loops of write() and read(), a counter per reader, no timing of single calls, no shutdown (the process ends).
 * Prints one number: bytes a second that readers received between two looks at their counters. Exit status 2 for wrong arguments, 1
 * where a system call fails.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Each counter on lines of its own. */
struct reader {
	volatile unsigned long long received;
	char padding[248];
};

static int ends[2];
static size_t message_bytes;

static void die(const char *what)
{
	fprintf(stderr, "pipe_peer: %s: %s\n", what, strerror(errno));
	_exit(1);
}

static void *message(int filling)
{
	void *memory = aligned_alloc(4096, (message_bytes + 4095) / 4096 * 4096);
	if (memory == NULL)
		die("memory");
	memset(memory, filling, message_bytes);
	return memory;
}

static void *write_forever(void *unused)
{
	char *memory = message('w');
	(void)unused;
	for (;;) {
		size_t done = 0;
		while (done < message_bytes) {
			ssize_t n = write(ends[1], memory + done, message_bytes - done);
			if (n < 0)
				die("write");
			done += (size_t)n;
		}
	}
	return NULL;
}

static void *read_forever(void *argument)
{
	struct reader *reader = argument;
	void *memory = message('r');
	for (;;) {
		ssize_t n = read(ends[0], memory, message_bytes);
		if (n < 0)
			die("read");
		reader->received += (unsigned long long)n;
	}
	return NULL;
}

static unsigned long long received(const struct reader *readers, long count)
{
	unsigned long long sum = 0;
	for (long i = 0; i < count; i++)
		sum += readers[i].received;
	return sum;
}

static double now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC_RAW, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void sleep_ms(long milliseconds)
{
	struct timespec time = { milliseconds / 1000, milliseconds % 1000 * 1000000 };
	nanosleep(&time, NULL);
}

static void start(void *(*body)(void *), void *argument)
{
	pthread_t thread;
	if ((errno = pthread_create(&thread, NULL, body, argument)) != 0)
		die("thread");
}

int main(int argc, char **argv)
{
	long value[6];
	if (argc != 7) {
		fprintf(stderr, "usage: pipe_peer WRITERS READERS MESSAGE_BYTES PIPE_BYTES "
				"WARMUP_MS DURATION_MS\n");
		return 2;
	}
	for (int i = 0; i < 6; i++) {
		char *end;
		value[i] = strtol(argv[i + 1], &end, 10);
		if (*end != '\0' || value[i] < (i == 4 ? 0 : 1)) {
			fprintf(stderr, "pipe_peer: not a number: %s\n", argv[i + 1]);
			return 2;
		}
	}
	message_bytes = (size_t)value[2];
	struct reader *readers = aligned_alloc(256, (size_t)value[1] * sizeof(*readers));
	if (readers == NULL)
		die("memory");
	memset(readers, 0, (size_t)value[1] * sizeof(*readers));
	if (pipe(ends) != 0)
		die("pipe");
	if (fcntl(ends[1], F_SETPIPE_SZ, (int)value[3]) < (int)value[3])
		die("F_SETPIPE_SZ");
	for (long i = 0; i < value[1]; i++)
		start(read_forever, &readers[i]);
	for (long i = 0; i < value[0]; i++)
		start(write_forever, NULL);

	sleep_ms(value[4]);
	unsigned long long bytes_before = received(readers, value[1]);
	double before = now();
	sleep_ms(value[5]);
	unsigned long long bytes_after = received(readers, value[1]);
	double after = now();
	printf("%.0f\n", (double)(bytes_after - bytes_before) / (after - before));
	fflush(stdout);
	_exit(0);
}
