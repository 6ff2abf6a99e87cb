/* copy_peer: one thread copies messages into a shared buffer, another copies them out, with no lock and no waiting for each other at all;
 * prints how many bytes a second went out.
 *
 *   copy_peer MESSAGE_BYTES BUFFER_BYTES DURATION_MS
 *
 * What two CPUs can move through memory at most: a pipe does the same copies and must also wait. Exit status 2 for wrong arguments.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static char *buffer;
static size_t message_bytes, buffer_bytes;
static volatile int is_over;
static volatile unsigned long long copied_out;

static void *copy_in(void *unused)
{
	char *message = malloc(message_bytes);
	(void)unused;
	memset(message, 1, message_bytes);
	for (size_t at = 0; !is_over; at = (at + message_bytes) % buffer_bytes) {
		memcpy(buffer + at, message, message_bytes);
		__asm__ volatile("" : : : "memory");
	}
	return NULL;
}

static void *copy_out(void *unused)
{
	char *message = malloc(message_bytes);
	(void)unused;
	/* Half a buffer away from where the other thread begins. */
	for (size_t at = buffer_bytes / 2 / message_bytes * message_bytes; !is_over; at = (at + message_bytes) % buffer_bytes) {
		memcpy(message, buffer + at, message_bytes);
		__asm__ volatile("" : : : "memory");
		copied_out += message_bytes;
	}
	return NULL;
}

static double now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	pthread_t in, out;
	double begin;
	unsigned long long before;
	if (argc != 4 || (message_bytes = strtoull(argv[1], NULL, 10)) == 0 || (buffer_bytes = strtoull(argv[2], NULL, 10)) % message_bytes != 0 ||
	    atoi(argv[3]) <= 0) {
		fprintf(stderr, "usage: copy_peer MESSAGE_BYTES BUFFER_BYTES DURATION_MS (the buffer holds whole messages)\n");
		return 2;
	}
	buffer = aligned_alloc(4096, (buffer_bytes + 4095) / 4096 * 4096);
	memset(buffer, 1, buffer_bytes);
	if (pthread_create(&in, NULL, copy_in, NULL) != 0 || pthread_create(&out, NULL, copy_out, NULL) != 0)
		return 1;
	usleep((useconds_t)atoi(argv[3]) * 250);
	begin = now();
	before = copied_out;
	usleep((useconds_t)atoi(argv[3]) * 1000);
	printf("%.9g\n", (double)(copied_out - before) / (now() - begin));
	is_over = 1;
	pthread_join(in, NULL);
	pthread_join(out, NULL);
	return 0;
}
