/* A log call of generated code: words, which prelude/metal_logging writes.
 *
 *   level; arguments | LOG_FOUR_WORDS if they have four words each;
 *   address and bytes of subsystem, category and format; then, for n arguments,
 *   n tags (kind | bytes of a component << 8 | components << 16), n first words, and n second, third and
 * fourth ones where they have four. A text has its address in the first and second word, its bytes in the
 * third. Kernel code has read every byte of these texts, or the compiler has laid them out: they may be read.
 */
#ifndef SMELT_ABI_LOG_WORDS_H
#define SMELT_ABI_LOG_WORDS_H

enum log_head { LOG_LEVEL, LOG_COUNT, LOG_SUBSYSTEM, LOG_CATEGORY = 4, LOG_FORMAT = 6, LOG_HEAD_WORDS = 8 };

#define LOG_FOUR_WORDS 256u
#define LOG_MOST_ARGUMENTS 255
#define LOG_LONGEST_TEXT 1023

/* The most words of a call. */
#define LOG_MOST_WORDS (LOG_HEAD_WORDS + LOG_MOST_ARGUMENTS * 5)

#endif
