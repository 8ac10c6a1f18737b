/* The settings of the stand-in driver library, as nvml.c documents them, and what every call begins with. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct { int gpu, slot; } Device; /* slot -1: the GPU itself */

static int calls;
static char state[8192];

static void load_state(void) {
    const char *path = getenv("NVML_STATE_FILE");
    state[0] = 0;
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return;
    ssize_t got = read(file, state, sizeof state - 1);
    state[got > 0 ? got : 0] = 0;
    close(file);
}

/* A setting's text, copied; the default where it is set nowhere. */
static char *setting(const char *name, const char *otherwise, char *out, size_t size) {
    const char *found = getenv(name);
    size_t length = found ? strlen(found) : 0;
    size_t name_length = strlen(name);
    for (const char *line = state; *line;) {
        const char *end = strchrnul(line, '\n');
        if (!strncmp(line, name, name_length) && line[name_length] == '=') {
            found = line + name_length + 1;
            length = (size_t)(end - found);
        }
        line = *end ? end + 1 : end;
    }
    if (!found) { found = otherwise; length = strlen(otherwise); }
    if (length >= size) length = size - 1;
    memcpy(out, found, length);
    out[length] = 0;
    return out;
}

static long number(const char *name, long otherwise) {
    char text[64];
    return *setting(name, "", text, sizeof text) ? atol(text) : otherwise;
}

/* The n-th item of a list, or its last; 0 where the list is set nowhere. */
static int item(const char *name, int n, char *out, size_t size) {
    char list[4096];
    setting(name, "\x01", list, sizeof list);
    if (list[0] == 1) return 0;
    char *start = list, *bar;
    while (n-- > 0 && (bar = strchr(start, '|'))) start = bar + 1;
    size_t length = (size_t)(strchrnul(start, '|') - start);
    if (length >= size) length = size - 1;
    memcpy(out, start, length);
    out[length] = 0;
    return 1;
}

static long item_number(const char *name, int n, long otherwise) {
    char text[64];
    return item(name, n, text, sizeof text) && *text ? atol(text) : otherwise;
}

/* The value of the first entry "function[@device]=value" that fits; 0 for none. */
static double entry(const char *name, const char *function, const Device *device) {
    char list[4096], *rest = list, *one;
    setting(name, "", list, sizeof list);
    while ((one = strsep(&rest, ","))) {
        char *value = strrchr(one, '=');
        if (!value) continue;
        *value++ = 0;
        char *where = strchr(one, '@');
        if (where) {
            *where++ = 0;
            int gpu = -1, slot = -1;
            sscanf(where, "%d.%d", &gpu, &slot);
            if (!device || device->gpu != gpu || device->slot != slot) continue;
        }
        if (!strcmp(one, "*") || !strcmp(one, function)) return atof(value);
    }
    return 0;
}

static void note(const char *what) {
    const char *path = getenv("NVML_CALLS_FILE");
    FILE *file = path ? fopen(path, "ae") : NULL;
    if (!file) return;
    fprintf(file, "%s\n", what);
    fclose(file);
}

/* What every call begins with: hangs, breaks or fails as the settings say. */
static int begin(const char *function, const Device *device) {
    load_state();
    for (double slept = 0; slept < entry("NVML_SLEEPS", function, device); slept += 0.005) {
        nanosleep(&(struct timespec){0, 5000000}, NULL);
        load_state();
    }
    long limit = number("NVML_BROKEN_AFTER", -1);
    if (limit >= 0 && calls >= limit) return 999;
    calls++;
    return (int)entry("NVML_FAULTS", function, device);
}
