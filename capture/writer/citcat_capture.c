#include "citcat_capture.h"

#define VERSION 2
#define FIELD_BYTES (CITCAT_CAPTURE_HEADER_BYTES - 8)
#define END_RECORD 255
#define HAS_POSITIONS 1u
#define HAS_CLOCK 2u
#define WORDS (CITCAT_CAPTURE_RECORD_BYTES / 8)

/* Byte by byte, so that hosts of either byte order write the same file. */
static void put_number(uint8_t *to, uint64_t value, unsigned bytes)
{
	unsigned i;

	for (i = 0; i < bytes; i++)
		to[i] = (uint8_t)(value >> (8 * i));
}

static uint64_t get_word(const uint8_t *from)
{
	uint64_t value = 0;
	unsigned i;

	for (i = 0; i < 8; i++)
		value |= (uint64_t)from[i] << (8 * i);
	return value;
}

/* FNV-1a of 64 bits */
static uint64_t sum_of_header(const uint8_t *header)
{
	uint64_t sum = 0xcbf29ce484222325u;
	unsigned i;

	for (i = 0; i < FIELD_BYTES; i++)
		sum = (sum ^ header[i]) * 0x100000001b3u;
	return sum;
}

int citcat_capture_begin(struct citcat_capture *capture, const struct citcat_capture_info *info,
			 citcat_capture_sink sink, void *context)
{
	static const uint8_t magic[8] = { 0x93, 'C', 'I', 'T', 'C', 'A', 'P', '\n' };
	uint8_t header[CITCAT_CAPTURE_HEADER_BYTES] = { 0 };
	unsigned i;

	capture->sink = sink;
	capture->context = context;
	capture->records = 0;
	capture->sum = 0;
	capture->sum_of_sums = 0;

	for (i = 0; i < sizeof(magic); i++)
		header[i] = magic[i];
	put_number(header + 8, VERSION, 2);
	put_number(header + 10, CITCAT_CAPTURE_HEADER_BYTES, 2);
	put_number(header + 12, CITCAT_CAPTURE_RECORD_BYTES, 2);
	put_number(header + 14,
		   (info->counts_instructions ? HAS_POSITIONS : 0) |
			   (info->counts_clocks ? HAS_CLOCK : 0),
		   2);
	header[16] = (uint8_t)info->cpu;
	header[17] = (uint8_t)info->cache;
	header[18] = info->bus_bytes ? info->bus_bytes : 4;
	header[19] = info->line_bytes;
	put_number(header + 20, info->address_mask ? info->address_mask : 0xffffffffu, 4);
	put_number(header + 24, info->clock_hz, 8);
	for (i = 0; i < 32 && info->monitor && info->monitor[i]; i++)
		header[32 + i] = (uint8_t)info->monitor[i];
	put_number(header + FIELD_BYTES, sum_of_header(header), 8);
	return sink(context, header, sizeof(header));
}

static void pack(const struct citcat_capture_record *record, uint8_t *bytes)
{
	unsigned i;

	put_number(bytes, record->instructions, 8);
	put_number(bytes + 8, record->clock, 4);
	put_number(bytes + 12, record->address, 4);
	put_number(bytes + 16, record->iterations, 4);
	bytes[20] = record->type;
	bytes[21] = record->size;
	bytes[22] = record->flags;
	bytes[23] = record->burst;
	for (i = 0; i < CITCAT_CAPTURE_DATA_BYTES; i++)
		bytes[24 + i] = record->data[i];
}

int citcat_capture_put(struct citcat_capture *capture, const struct citcat_capture_record *record)
{
	uint8_t bytes[CITCAT_CAPTURE_RECORD_BYTES];
	unsigned i;

	pack(record, bytes);
	for (i = 0; i < WORDS; i++) {
		capture->sum += get_word(bytes + 8 * i);
		capture->sum_of_sums += capture->sum;
	}
	capture->records++;
	return capture->sink(capture->context, bytes, sizeof(bytes));
}

int citcat_capture_high(struct citcat_capture *capture, uint32_t upper)
{
	struct citcat_capture_record record = { 0 };

	record.instructions = CITCAT_NOT_COUNTED;
	record.address = upper;
	record.type = CITCAT_HIGH;
	return citcat_capture_put(capture, &record);
}

int citcat_capture_end(struct citcat_capture *capture)
{
	struct citcat_capture_record end = { 0 };
	uint8_t bytes[CITCAT_CAPTURE_RECORD_BYTES];

	end.instructions = capture->records;
	end.type = END_RECORD;
	end.size = CITCAT_CAPTURE_DATA_BYTES;
	put_number(end.data, capture->sum, 8);
	put_number(end.data + 8, capture->sum_of_sums, 8);
	pack(&end, bytes);
	return capture->sink(capture->context, bytes, sizeof(bytes));
}
