/* C interface of the twin: an image of the card, compiled by Verilator, run cycle by cycle.
 *
 * Flow: driver (crates/card/twin) → this → hue_card. It moves whole frames through the card's AXI-Stream ports and
 * registers through its AXI-Lite port, like a board; nothing else of the card is accessible. Only one thread may use a twin
 * at a time. Cycles count from the end of reset. Numbers that are out of range are refused, never undefined.
 */
#ifndef HUE_TWIN_H
#define HUE_TWIN_H

#include <stddef.h>
#include <stdint.h>

#define HUE_TWIN_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

#define HUE_TWIN_ABI 6
#define HUE_TWIN_PORTS 8
/* Longest frame that can be pushed; the card itself cuts at 9,216. */
#define HUE_TWIN_FRAME_BYTES_MAX 65535

typedef struct hue_twin hue_twin;

/* Results. */
enum {
  HUE_TWIN_OK = 0,
  HUE_TWIN_ARGUMENT = 1,   /* an argument is out of range */
  HUE_TWIN_REFUSED = 2,    /* the card answered a register access with an error */
  HUE_TWIN_NO_ANSWER = 3,  /* the card did not answer a register access */
  HUE_TWIN_NOTHING = 4,    /* no frame has left */
  HUE_TWIN_FILE = 5,       /* the wave file cannot be written, or the image was built without waves */
};

/* A frame that left the card. */
typedef struct {
  const uint8_t *bytes; /* until the next call that pops */
  uint32_t len;
  uint32_t tag; /* of the frame that it came from */
  uint32_t port;
  uint64_t first_cycle; /* in which its first beat moved */
  uint64_t last_cycle;
} hue_twin_frame;

/* A frame, or a copy of one for a network, that ended inside the card. */
typedef struct {
  uint32_t tag;   /* of the frame */
  uint32_t net;   /* the card's index of its network */
  uint32_t cause; /* hue_pkg.sv: an outcome; 256 plus the reason why it is unclaimed; from 512 on: Ended* */
} hue_twin_ending;

/* HUE_TWIN_ABI of the library. */
HUE_TWIN_API uint32_t hue_twin_abi(void);
/* Name of the image from which it was built. */
HUE_TWIN_API const char *hue_twin_image(void);

/* A card after reset; NULL without memory. */
HUE_TWIN_API hue_twin *hue_twin_new(void);
HUE_TWIN_API void hue_twin_free(hue_twin *twin);

/* Queues a frame outside a port. It is offered at the earliest in cycle `not_before`, after the frames pushed to the
 * port before it, and in ordered mode after all pushed before it. */
HUE_TWIN_API int hue_twin_push(hue_twin *twin, uint32_t port, uint64_t time_ns, uint32_t tag, uint64_t not_before,
                  const uint8_t *bytes, size_t len);
/* The oldest frame that has left and was not popped. */
HUE_TWIN_API int hue_twin_pop(hue_twin *twin, hue_twin_frame *frame);

/* Whether endings of frames with a tag other than 0 are kept for hue_twin_ended. Switching this off discards those kept. */
HUE_TWIN_API void hue_twin_keep_endings(hue_twin *twin, int on);
/* The oldest ending that was kept and not taken: HUE_TWIN_OK or HUE_TWIN_NOTHING. */
HUE_TWIN_API int hue_twin_ended(hue_twin *twin, hue_twin_ending *ending);

/* Frames that wait outside a port, including one that is moving in. */
HUE_TWIN_API uint64_t hue_twin_waiting(const hue_twin *twin, uint32_t port);
/* Sets the line to which a port sends: a byte takes `cycles / per` cycles, and a frame has the overhead of Ethernet (preamble,
 * at least 60 bytes, FCS, gap); the next frame begins when the line is free. 0 cycles: no line, a beat a cycle. */
HUE_TWIN_API int hue_twin_line(hue_twin *twin, uint32_t port, uint64_t cycles, uint64_t per);

/* Register accesses; the clock runs meanwhile. */
HUE_TWIN_API int hue_twin_read(hue_twin *twin, uint32_t address, uint32_t *value);
HUE_TWIN_API int hue_twin_write(hue_twin *twin, uint32_t address, uint32_t value);
/* Makes many writes. Each is offered in the clock after the previous one was taken, whether that was answered or not. `bad`
 * becomes the first write that was out of range, refused or not answered, or `count` if there is none. Once this is known,
 * no further write is offered. */
typedef struct {
  uint32_t address;
  uint32_t value;
} hue_twin_register;
HUE_TWIN_API int hue_twin_write_all(hue_twin *twin, const hue_twin_register *writes, size_t count, size_t *bad);

/* Runs at most `cycles` cycles; ends early once the card is idle (hue_twin_idle). Returns how many ran. */
HUE_TWIN_API uint64_t hue_twin_run(hue_twin *twin, uint64_t cycles);
/* Runs exactly `cycles` cycles. */
HUE_TWIN_API void hue_twin_run_exactly(hue_twin *twin, uint64_t cycles);
HUE_TWIN_API uint64_t hue_twin_cycles(const hue_twin *twin);
/* Whether no frame waits outside the ports or is anywhere in the card. */
HUE_TWIN_API int hue_twin_idle(const hue_twin *twin);
/* Cycles since a beat last moved on any stream or waited for a line, or a frame left the stages; a watchdog's measure. */
HUE_TWIN_API uint64_t hue_twin_still_cycles(const hue_twin *twin);
/* Whether the interrupt is raised. */
HUE_TWIN_API int hue_twin_interrupt(const hue_twin *twin);

/* Flips bits in a word of the external memories, as a particle does; for tests. HUE_TWIN_ARGUMENT for a word that does not
 * exist, or an image without such memories. */
HUE_TWIN_API int hue_twin_damage(hue_twin *twin, uint32_t word, uint64_t bits);

/* Ordered mode: a frame is offered only when no frame of another port is before the stages, so that frames meet
 * the meters in the order of pushing. */
HUE_TWIN_API void hue_twin_ordered(hue_twin *twin, int on);
/* Random pauses: in how many of 256 cycles a port offers no beat, and in how many it takes none (256: never). The same seed
 * gives the same pauses. */
HUE_TWIN_API int hue_twin_stress(hue_twin *twin, uint64_t seed, uint32_t idle, uint32_t stall);

/* Writes a waveform of the cycles [from, to) to an FST file. */
HUE_TWIN_API int hue_twin_wave(hue_twin *twin, const char *path, uint64_t from_cycle, uint64_t to_cycle);
/* Ends the waveform early, if there is one. */
HUE_TWIN_API void hue_twin_wave_end(hue_twin *twin);

/* The first assertion of the card that failed, as FILE:LINE and instance; NULL while all hold. */
HUE_TWIN_API const char *hue_twin_failure(const hue_twin *twin);

#ifdef __cplusplus
}
#endif
#endif
