/* C interface of the twin: an image of the card, compiled by Verilator, run cycle by cycle.
 *
 * Flow: driver (crates/card/twin) → this → hue_card. It moves whole frames through the card's AXI-Stream ports and
 * registers through its AXI-Lite port, as a board would; nothing else of the card is reachable. A twin is used by one
 * thread at a time. Cycles count from the end of reset. Numbers that are out of range are refused, never undefined.
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
  uint32_t cause; /* hue_pkg.sv: an outcome; 256 and the reason why it is nobody's; 512: the output queues had no room */
} hue_twin_ending;

/* HUE_TWIN_ABI of the library. */
HUE_TWIN_API uint32_t hue_twin_abi(void);
/* Name of the image it was built from. */
HUE_TWIN_API const char *hue_twin_image(void);

/* A card after reset; NULL without memory. */
HUE_TWIN_API hue_twin *hue_twin_new(void);
HUE_TWIN_API void hue_twin_free(hue_twin *twin);

/* Queues a frame outside a port. It is offered at the earliest in cycle `not_before`, after the frames pushed to the
 * port before it, and in ordered mode after all pushed before it. */
HUE_TWIN_API int hue_twin_push(hue_twin *twin, uint32_t port, uint64_t time_ns, uint32_t tag, uint64_t not_before,
                  const uint8_t *bytes, size_t len);
/* The oldest frame that left and was not popped. */
HUE_TWIN_API int hue_twin_pop(hue_twin *twin, hue_twin_frame *frame);

/* Whether endings of frames with a tag other than 0 are kept for hue_twin_ended; switched off, those kept are forgotten. */
HUE_TWIN_API void hue_twin_keep_endings(hue_twin *twin, int on);
/* The oldest ending that was kept and not taken: HUE_TWIN_OK or HUE_TWIN_NOTHING. */
HUE_TWIN_API int hue_twin_ended(hue_twin *twin, hue_twin_ending *ending);

/* Frames that wait outside a port; one that moves in is among them. */
HUE_TWIN_API uint64_t hue_twin_waiting(const hue_twin *twin, uint32_t port);
/* What a port sends to: a line on which a byte takes `cycles / per` cycles, and a frame what it does on Ethernet (preamble,
 * 60 bytes at least, check sequence, gap); the next frame begins when the line is free. 0 cycles: a beat a cycle. */
HUE_TWIN_API int hue_twin_line(hue_twin *twin, uint32_t port, uint64_t cycles, uint64_t per);

/* Register accesses; the clock runs meanwhile. */
HUE_TWIN_API int hue_twin_read(hue_twin *twin, uint32_t address, uint32_t *value);
HUE_TWIN_API int hue_twin_write(hue_twin *twin, uint32_t address, uint32_t value);
/* Writes many, each offered in the clock after the one before was taken, whether that is answered or not. `bad` becomes the
 * first that was out of range, refused or not answered, and is `count` when there is none; nothing is offered behind it. */
typedef struct {
  uint32_t address;
  uint32_t value;
} hue_twin_register;
HUE_TWIN_API int hue_twin_write_all(hue_twin *twin, const hue_twin_register *writes, size_t count, size_t *bad);

/* Runs at most so many cycles; ends early once nothing is to be done (hue_twin_idle). Returns how many ran. */
HUE_TWIN_API uint64_t hue_twin_run(hue_twin *twin, uint64_t cycles);
/* Runs exactly so many cycles. */
HUE_TWIN_API void hue_twin_run_exactly(hue_twin *twin, uint64_t cycles);
HUE_TWIN_API uint64_t hue_twin_cycles(const hue_twin *twin);
/* Whether no frame waits outside the ports or is anywhere in the card. */
HUE_TWIN_API int hue_twin_idle(const hue_twin *twin);
/* Cycles since a beat last moved on any stream or waited for a line, or a frame left the stages; a watchdog's measure. */
HUE_TWIN_API uint64_t hue_twin_still_cycles(const hue_twin *twin);
/* Whether the interrupt is raised. */
HUE_TWIN_API int hue_twin_interrupt(const hue_twin *twin);

/* Turns bits over in a word of the external memories, as a particle does; for tests. HUE_TWIN_ARGUMENT for a word that is
 * not there, or an image without such memories. */
HUE_TWIN_API int hue_twin_damage(hue_twin *twin, uint32_t word, uint64_t bits);

/* Ordered mode: a frame is offered only when no frame of another port is before the stages, so that frames meet
 * the meters in the order of pushing. */
HUE_TWIN_API void hue_twin_ordered(hue_twin *twin, int on);
/* Random pauses: of 256 cycles, how many a port has no beat to offer, and how many one does not take (256: never). The
 * same seed gives the same pauses. */
HUE_TWIN_API int hue_twin_stress(hue_twin *twin, uint64_t seed, uint32_t idle, uint32_t stall);

/* Writes a wave of the cycles [from, to) to an FST file. */
HUE_TWIN_API int hue_twin_wave(hue_twin *twin, const char *path, uint64_t from_cycle, uint64_t to_cycle);
/* Ends the wave before its time, if there is one. */
HUE_TWIN_API void hue_twin_wave_end(hue_twin *twin);

/* The first assertion of the card that failed, as FILE:LINE and instance; NULL while all hold. */
HUE_TWIN_API const char *hue_twin_failure(const hue_twin *twin);

#ifdef __cplusplus
}
#endif
#endif
