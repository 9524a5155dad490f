// What an infrared receiver sees, counted; and a key that is pressed when it sees a certain pulse.
#include <linux/bpf.h>
#include <linux/lirc.h>
#include <bpf/bpf_helpers.h>

struct {
	__u64 pulses, pulses_us, spaces, spaces_us, ends;
} seen, seen_by_other;

#define COUNT(seen, sample)                                                     \
	do {                                                                    \
		if (LIRC_IS_PULSE(sample)) {                                    \
			(seen).pulses++;                                        \
			(seen).pulses_us += LIRC_VALUE(sample);                 \
		} else if (LIRC_IS_SPACE(sample)) {                             \
			(seen).spaces++;                                        \
			(seen).spaces_us += LIRC_VALUE(sample);                 \
		} else if (LIRC_IS_TIMEOUT(sample)) {                           \
			(seen).ends++;                                          \
		}                                                               \
	} while (0)

SEC("lirc_mode2")
int count(__u32 *sample)
{
	COUNT(seen, *sample);
	return 0;
}

SEC("lirc_mode2")
int count_too(__u32 *sample)
{
	COUNT(seen_by_other, *sample);
	return 0;
}

SEC("lirc_mode2")
int press(__u32 *sample)
{
	if (LIRC_IS_PULSE(*sample) && LIRC_VALUE(*sample) == 1009)
		bpf_rc_keydown(sample, RC_PROTO_NEC, 0x1234, 0);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
