/* Makes writes to the files of a database fail: preloaded, and armed by the process itself.
 *
 * From the moment of arming, calls that write to, cut or sync a file whose path contains ".db" are
 * counted. The chosen one fails with the chosen error, and so do all after it if it is for ever. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static long calls, failures, chosen;
static int chosen_error, is_for_ever, is_armed;

void arm(long call, int error, int for_ever) {
    calls = failures = 0;
    chosen = call;
    chosen_error = error;
    is_for_ever = for_ever;
    is_armed = 1;
}
void disarm(void) { is_armed = 0; }
long counted_calls(void) { return calls; }
long counted_failures(void) { return failures; }

static int fails(int descriptor) {
    char link[64], path[4096];
    if (!is_armed) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    if (!strstr(path, ".db")) return 0;
    calls++;
    if (calls != chosen && !(is_for_ever && chosen && calls > chosen)) return 0;
    failures++;
    errno = chosen_error;
    return 1;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define FAILING(type, name, parameters, arguments) \
    type name parameters { return fails(fd) ? -1 : REAL(name) arguments; }

FAILING(ssize_t, write, (int fd, const void *data, size_t size), (fd, data, size))
FAILING(ssize_t, pwrite, (int fd, const void *data, size_t size, off_t at), (fd, data, size, at))
FAILING(ssize_t, pwrite64, (int fd, const void *data, size_t size, off64_t at), (fd, data, size, at))
FAILING(int, fsync, (int fd), (fd))
FAILING(int, fdatasync, (int fd), (fd))
FAILING(int, ftruncate, (int fd, off_t size), (fd, size))
FAILING(int, ftruncate64, (int fd, off64_t size), (fd, size))
