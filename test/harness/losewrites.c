/* A disk that loses what was not synchronised, as a library in front of the C library. Built and used by killgateway.ts.
 * Before each write to a file whose name ends with one of $LOSE_SUFFIXES, what it replaces is appended to $LOSE_UNDO.<name>;
 * fsync and fdatasync of the file empty that list. After a kill, undoing the list gives what a power cut would have left.
 *
 *   record: u64 offset, u64 size of the file before, u64 length, then `length` bytes that stood there (little endian)
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES 4096

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* For each descriptor: 0 unknown, -1 of no concern, else the descriptor of its list plus 1. */
static int lists[FILES];

static ssize_t (*next_pwrite)(int, const void *, size_t, off64_t);
static ssize_t (*next_write)(int, const void *, size_t);
static int (*next_fsync)(int);
static int (*next_fdatasync)(int);
static int (*next_ftruncate)(int, off64_t);
static int (*next_close)(int);

__attribute__((constructor)) static void begin(void) {
  next_pwrite = dlsym(RTLD_NEXT, "pwrite64");
  next_write = dlsym(RTLD_NEXT, "write");
  next_fsync = dlsym(RTLD_NEXT, "fsync");
  next_fdatasync = dlsym(RTLD_NEXT, "fdatasync");
  next_ftruncate = dlsym(RTLD_NEXT, "ftruncate64");
  next_close = dlsym(RTLD_NEXT, "close");
}

static int ends_with(const char *text, const char *end, size_t length) {
  size_t n = strlen(text);
  return n >= length && memcmp(text + n - length, end, length) == 0;
}

/* The descriptor of the list of `fd`, -1 when its file is of no concern. */
static int list_of(int fd) {
  const char *suffixes = getenv("LOSE_SUFFIXES"), *undo = getenv("LOSE_UNDO");
  if (fd < 0 || fd >= FILES || suffixes == NULL || undo == NULL) return -1;
  if (lists[fd] != 0) return lists[fd] < 0 ? -1 : lists[fd] - 1;
  char link[64], path[4096], name[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t n = readlink(link, path, sizeof path - 1);
  lists[fd] = -1;
  if (n <= 0) return -1;
  path[n] = 0;
  for (const char *s = suffixes; *s;) {
    size_t length = strcspn(s, ":");
    if (length > 0 && ends_with(path, s, length)) {
      snprintf(name, sizeof name, "%s.%s", undo, strrchr(path, '/') + 1);
      int list = open(name, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
      if (list >= 0) lists[fd] = list + 1;
      break;
    }
    s += length;
    if (*s == ':') s++;
  }
  return lists[fd] < 0 ? -1 : lists[fd] - 1;
}

static void keep(int fd, int list, uint64_t offset, size_t length) {
  struct stat st;
  if (fstat(fd, &st) != 0) return;
  uint64_t head[3] = {offset, (uint64_t)st.st_size, 0};
  char *old = malloc(length + sizeof head);
  if (old == NULL) abort();
  ssize_t n = length > 0 ? pread(fd, old + sizeof head, length, (off_t)offset) : 0;
  head[2] = n > 0 ? (uint64_t)n : 0;
  memcpy(old, head, sizeof head);
  if (next_write(list, old, sizeof head + head[2]) < 0) abort();
  free(old);
}

ssize_t pwrite64(int fd, const void *bytes, size_t length, off64_t offset) {
  pthread_mutex_lock(&lock);
  int list = list_of(fd);
  if (list >= 0) keep(fd, list, (uint64_t)offset, length);
  ssize_t n = next_pwrite(fd, bytes, length, offset);
  pthread_mutex_unlock(&lock);
  return n;
}

ssize_t pwrite(int fd, const void *bytes, size_t length, off_t offset) { return pwrite64(fd, bytes, length, offset); }

int ftruncate64(int fd, off64_t size) {
  pthread_mutex_lock(&lock);
  int list = list_of(fd);
  struct stat st;
  if (list >= 0 && fstat(fd, &st) == 0 && st.st_size > size) keep(fd, list, (uint64_t)size, (size_t)(st.st_size - size));
  else if (list >= 0) keep(fd, list, (uint64_t)size, 0);
  int result = next_ftruncate(fd, size);
  pthread_mutex_unlock(&lock);
  return result;
}

int ftruncate(int fd, off_t size) { return ftruncate64(fd, size); }

static int synced(int fd, int (*next)(int)) {
  pthread_mutex_lock(&lock);
  int list = list_of(fd);
  int result = next(fd);
  if (result == 0 && list >= 0 && next_ftruncate(list, 0) != 0) abort();
  pthread_mutex_unlock(&lock);
  return result;
}

int fsync(int fd) { return synced(fd, next_fsync); }
int fdatasync(int fd) { return synced(fd, next_fdatasync); }

int close(int fd) {
  pthread_mutex_lock(&lock);
  if (fd >= 0 && fd < FILES) {
    if (lists[fd] > 0) next_close(lists[fd] - 1);
    lists[fd] = 0;
  }
  pthread_mutex_unlock(&lock);
  return next_close(fd);
}
