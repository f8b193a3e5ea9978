#include "base/setting.h"
#include "base/error.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

static void warn(const struct setting *setting, const char *value) {
    struct text words = {0};
    for (int i = 0; setting->words[i]; i++)
        text_addf(&words, "%s%s", !i ? "" : setting->words[i + 1] ? ", " : " or ", setting->words[i]);
    log_line(SMELT_LOG_WARNING, "%s is '%s', expected %s; using %s", setting->variable, value,
             text_string(&words), setting->words[0]);
    text_free(&words);
}

int setting_choice(struct setting *setting) {
    const char *value = getenv(setting->variable);
    if (!value || !*value) return 0;
    for (int i = 0; setting->words[i]; i++)
        if (strcmp(value, setting->words[i]) == 0) return i;
    if (!atomic_flag_test_and_set(&setting->warned)) warn(setting, value);
    return 0;
}
