// SPDX-License-Identifier: GPL-2.0-only
/* citcatctl: the command for the citcat driver; see docs/driver.md. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "uapi/citcat_dump.h"
#include "uapi/citcat_ioctl.h"

#define DEVICE "/dev/citcat"

enum { EXIT_OK = 0, EXIT_NO = 1, EXIT_USAGE = 2, EXIT_SYSTEM = 4 };

static const char usage[] =
	"usage: citcatctl COMMAND\n"
	"  window               print the window that the kernel's command line reserves, as\n"
	"                       parameters for modprobe: phys=0x6000000 size=65536\n"
	"  start [OPTION]...    dump the state, empty the caches, begin the trace\n"
	"  run [OPTION]... CMD  start, run CMD, stop; the exit status is that of CMD\n"
	"  stop                 end the trace\n"
	"  info                 print what the driver knows\n"
	"options of start and run:\n"
	"  --stop-after MS      end the trace by itself after MS milliseconds\n"
	"  --redump-every MS    dump again in this rhythm, for analysers that fill up\n"
	"  --keep-caches        do not empty caches and TLB\n";

static int open_device(int mode)
{
	int fd = open(DEVICE, mode | O_CLOEXEC);

	if (fd < 0) {
		fprintf(stderr, "citcatctl: error: %s: %s%s\n", DEVICE, strerror(errno),
			errno == ENOENT ? " (is the module loaded?)" :
			errno == EBUSY ? " (another citcatctl is running)" : "");
		exit(EXIT_SYSTEM);
	}
	return fd;
}

static void fail(const char *what)
{
	fprintf(stderr, "citcatctl: error: %s: %s%s\n", what, strerror(errno),
		errno == EBUSY ? " (more than one processor is online, see dmesg)" : "");
	exit(EXIT_SYSTEM);
}

static unsigned int parse_ms(const char *option, const char *text)
{
	char *end;
	unsigned long value;

	errno = 0;
	value = text ? strtoul(text, &end, 10) : 0;
	if (!text || errno || end == text || *end || value == 0 || value > 0x7fffffff) {
		fprintf(stderr, "citcatctl: error: %s needs a number of milliseconds\n", option);
		exit(EXIT_USAGE);
	}
	return value;
}

/* Parses options into @request; returns the index of the first argument that is none. */
static int parse_start(int argc, char **argv, struct citcat_start *request)
{
	int n;

	memset(request, 0, sizeof(*request));
	for (n = 2; n < argc && !strncmp(argv[n], "--", 2); n++) {
		if (!strcmp(argv[n], "--"))
			return n + 1;
		if (!strcmp(argv[n], "--keep-caches")) {
			request->flags |= CITCAT_START_NO_CACHE_FLUSH;
		} else if (!strcmp(argv[n], "--stop-after")) {
			request->stop_after_ms = parse_ms(argv[n], argv[n + 1]);
			n++;
		} else if (!strcmp(argv[n], "--redump-every")) {
			request->redump_every_ms = parse_ms(argv[n], argv[n + 1]);
			n++;
		} else {
			fprintf(stderr, "citcatctl: error: unknown option %s\n", argv[n]);
			exit(EXIT_USAGE);
		}
	}
	return n;
}

static int run(char **command, struct citcat_start *request)
{
	int fd = open_device(O_RDWR), status;
	int go[2];
	char byte;
	pid_t child;

	/* The child exists before the trace begins and waits, so that only its work is traced. */
	if (pipe(go))
		fail("pipe");
	child = fork();
	if (child < 0)
		fail("fork");
	if (child == 0) {
		close(go[1]);
		if (read(go[0], &byte, 1) != 1)
			_exit(EXIT_SYSTEM);
		execvp(command[0], command);
		fprintf(stderr, "citcatctl: error: %s: %s\n", command[0], strerror(errno));
		_exit(127);
	}
	close(go[0]);
	if (ioctl(fd, CITCAT_IOC_START, request))
		fail("start");
	if (write(go[1], "g", 1) != 1)
		fail("pipe");
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			fail("waitpid");
	/* EINVAL: --stop-after ended the trace already. */
	if (ioctl(fd, CITCAT_IOC_STOP) && errno != EINVAL)
		fail("stop");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int print_info(void)
{
	struct citcat_info info;

	if (ioctl(open_device(O_RDONLY), CITCAT_IOC_INFO, &info))
		fail("info");
	printf("interface %u\n", info.version);
	printf("state %u-bit\n", info.state_bits);
	printf("window 0x%llx size %llu\n", (unsigned long long)info.window_base,
	       (unsigned long long)info.window_bytes);
	printf("first_traced 0x%llx\n", (unsigned long long)info.first_traced);
	printf("segments %u\n", info.segments);
	printf("running %u\n", info.running);
	return EXIT_OK;
}

/* A number of the kernel's command line: decimal, octal or hexadecimal, with K, M or G. */
static int parse_size(const char *text, char **end, uint64_t *value)
{
	*value = strtoull(text, end, 0);
	if (*end == text)
		return 0;
	switch (**end) {
	case 'G':
	case 'g':
		*value <<= 30;
		(*end)++;
		break;
	case 'M':
	case 'm':
		*value <<= 20;
		(*end)++;
		break;
	case 'K':
	case 'k':
		*value <<= 10;
		(*end)++;
		break;
	}
	return 1;
}

/* memmap=SIZE$BASE or reserve=BASE,SIZE; the first that is large enough. */
static int print_window(void)
{
	static char line[8192];
	FILE *file = fopen("/proc/cmdline", "r");
	uint64_t base, bytes;
	char *word, *end;

	if (!file || !fgets(line, sizeof(line), file))
		fail("/proc/cmdline");
	fclose(file);
	for (word = strtok(line, "\n "); word; word = strtok(NULL, "\n ")) {
		if (!strncmp(word, "memmap=", 7)) {
			if (!parse_size(word + 7, &end, &bytes) || *end != '$' ||
			    !parse_size(end + 1, &end, &base) || *end)
				continue;
		} else if (!strncmp(word, "reserve=", 8)) {
			if (!parse_size(word + 8, &end, &base) || *end != ',' ||
			    !parse_size(end + 1, &end, &bytes) || *end)
				continue;
		} else {
			continue;
		}
		if (bytes < CITCAT_WINDOW_MIN_BYTES || base + bytes > 1ull << 32)
			continue;
		printf("phys=0x%llx size=%llu\n", (unsigned long long)base,
		       (unsigned long long)bytes);
		return EXIT_OK;
	}
	fprintf(stderr,
		"citcatctl: error: the kernel's command line has no memmap=SIZE$BASE of %d KiB\n",
		CITCAT_WINDOW_MIN_BYTES >> 10);
	return EXIT_NO;
}

int main(int argc, char **argv)
{
	const char *command = argc > 1 ? argv[1] : "";
	struct citcat_start request;
	int next;

	if (!strcmp(command, "window") && argc == 2)
		return print_window();
	if (!strcmp(command, "info") && argc == 2)
		return print_info();
	if (!strcmp(command, "stop") && argc == 2) {
		if (ioctl(open_device(O_RDWR), CITCAT_IOC_STOP)) {
			if (errno != EINVAL)
				fail("stop");
			fprintf(stderr, "citcatctl: error: no trace is running\n");
			return EXIT_NO;
		}
		return EXIT_OK;
	}
	if (!strcmp(command, "start") && parse_start(argc, argv, &request) == argc) {
		int fd = open_device(O_RDWR);

		if (ioctl(fd, CITCAT_IOC_START, &request))
			fail("start");
		return EXIT_OK;
	}
	if (!strcmp(command, "run")) {
		next = parse_start(argc, argv, &request);
		if (next < argc)
			return run(argv + next, &request);
	}
	if (!strcmp(command, "--help") || !strcmp(command, "-h")) {
		fputs(usage, stdout);
		return EXIT_OK;
	}
	fputs(usage, stderr);
	return EXIT_USAGE;
}
