/*
 * A capture of four transactions, as a monitor would write it:
 *
 *	cc -o example example.c citcat_capture.c && ./example four.cap && citcat dump four.cap
 */
#include <stdio.h>

#include "citcat_capture.h"

static int write_to_file(void *file, const uint8_t *bytes, size_t size)
{
	return fwrite(bytes, 1, size, (FILE *)file) == size ? 0 : -1;
}

int main(int argc, char **argv)
{
	/* mov al, [1234h]; out 80h, al: fetched, read and sent to a port */
	static const struct citcat_capture_record records[] = {
		{ 0, 0, 0xffff0, 0, CITCAT_CODE_READ, 4, 0, 0, { 0xa0, 0x34, 0x12, 0xe6 } },
		{ 0, 2, 0xffff4, 0, CITCAT_CODE_READ, 1, 0, 0, { 0x80 } },
		{ 0, 4, 0x01234, 0, CITCAT_DATA_READ, 1, 0, 0, { 0x5a } },
		{ 1, 6, 0x00080, 0, CITCAT_IO_WRITE, 1, 0, 0, { 0x5a } },
	};
	struct citcat_capture_info info = { 0 };
	struct citcat_capture capture;
	FILE *file = argc == 2 ? fopen(argv[1], "wb") : NULL;
	int failed;
	size_t i;

	if (!file) {
		fprintf(stderr, "usage: example FILE\n");
		return 2;
	}
	info.cpu = CITCAT_CPU_386;
	info.cache = CITCAT_CACHE_NONE;
	info.counts_instructions = 1;
	info.counts_clocks = 1;
	info.monitor = "example";
	failed = citcat_capture_begin(&capture, &info, write_to_file, file);
	for (i = 0; !failed && i < sizeof(records) / sizeof(records[0]); i++)
		failed = citcat_capture_put(&capture, &records[i]);
	if (!failed)
		failed = citcat_capture_end(&capture);
	if (fclose(file) || failed) {
		perror(argv[1]);
		return 4;
	}
	return 0;
}
