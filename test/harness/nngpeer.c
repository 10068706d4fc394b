/* An SP peer on libnng for tests, compiled by test/harness/nngpeer.ts.
 *
 *   nngpeer PROTOCOL listen|dial URL [--json] [--trace] [--echo]
 *
 * Each line of standard input is sent as one message (surveys and requests too: what comes back is printed like any message).
 * Each received message is printed as one line: "ok <text>", or with --json "bad <hex>" for what is no JSON object or array.
 * --json   first takes off the 26 bytes of a trace header (0A CE, trace id, span id) and prints them: "ok <hex>|<text>"
 * --trace  puts such a header in front of what is sent: trace id 01 01 ..., span id 02 02 ...
 * --echo   (rep, respondent) answers each message with itself
 * "up" and "down" tell of peers. Dialing is asynchronous with 0.1 to 5 s between tries.
 */
#include <ctype.h>
#include <nng/nng.h>
#include <nng/protocol/bus0/bus.h>
#include <nng/protocol/pair0/pair.h>
#include <nng/protocol/pair1/pair.h>
#include <nng/protocol/pipeline0/pull.h>
#include <nng/protocol/pipeline0/push.h>
#include <nng/protocol/pubsub0/pub.h>
#include <nng/protocol/pubsub0/sub.h>
#include <nng/protocol/reqrep0/rep.h>
#include <nng/protocol/reqrep0/req.h>
#include <nng/protocol/survey0/respond.h>
#include <nng/protocol/survey0/survey.h>
#include <nng/supplemental/util/platform.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static nng_socket sock;
static int json, trace, echo;
static nng_mtx *out;

static const char *skip(const char *p, const char *end) {
  while (p < end && (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r')) p++;
  return p;
}

/* Reads one JSON value; gives what follows, or NULL. */
static const char *value(const char *p, const char *end, int depth) {
  if (depth > 64 || (p = skip(p, end)) >= end) return NULL;
  if (*p == '"') {
    for (p++; p < end && *p != '"'; p++) {
      if ((unsigned char) *p < 0x20) return NULL;
      if (*p == '\\') p++;
    }
    return p < end ? p + 1 : NULL;
  }
  if (*p == '{' || *p == '[') {
    char close = *p == '{' ? '}' : ']';
    int object = *p == '{';
    p = skip(p + 1, end);
    if (p < end && *p == close) return p + 1;
    for (;;) {
      if (object) {
        p = skip(p, end);
        if (p >= end || *p != '"' || (p = value(p, end, depth + 1)) == NULL) return NULL;
        p = skip(p, end);
        if (p >= end || *p++ != ':') return NULL;
      }
      if ((p = value(p, end, depth + 1)) == NULL) return NULL;
      p = skip(p, end);
      if (p >= end) return NULL;
      if (*p == close) return p + 1;
      if (*p++ != ',') return NULL;
    }
  }
  const char *words[] = {"true", "false", "null"};
  for (int i = 0; i < 3; i++) {
    size_t n = strlen(words[i]);
    if ((size_t) (end - p) >= n && memcmp(p, words[i], n) == 0) return p + n;
  }
  const char *from = p;
  while (p < end && (isdigit((unsigned char) *p) || strchr("+-.eE", *p) != NULL)) p++;
  return p > from ? p : NULL;
}

static int is_json(const char *p, size_t size) {
  const char *end = p + size;
  const char *first = skip(p, end);
  if (first >= end || (*first != '{' && *first != '[')) return 0;
  const char *rest = value(p, end, 0);
  return rest != NULL && skip(rest, end) == end;
}

static void hex(const char *p, size_t size) {
  for (size_t i = 0; i < size; i++) printf("%02x", (unsigned char) p[i]);
}

static void show(const char *p, size_t size) {
  nng_mtx_lock(out);
  if (json) {
    const char *head = p;
    size_t had = 0;
    if (size >= 26 && (unsigned char) p[0] == 0x0a && (unsigned char) p[1] == 0xce) {
      had = 26;
      p += 26;
      size -= 26;
    }
    if (is_json(p, size)) {
      printf("ok ");
      hex(head, had);
      if (had > 0) printf("|");
      fwrite(p, 1, size, stdout);
    } else {
      printf("bad ");
      hex(p, size);
    }
  } else {
    printf("ok ");
    fwrite(p, 1, size, stdout);
  }
  printf("\n");
  fflush(stdout);
  nng_mtx_unlock(out);
}

static void peer(nng_pipe pipe, nng_pipe_ev ev, void *arg) {
  (void) pipe;
  (void) arg;
  nng_mtx_lock(out);
  printf("%s\n", ev == NNG_PIPE_EV_ADD_POST ? "up" : "down");
  fflush(stdout);
  nng_mtx_unlock(out);
}

static void receive(void *arg) {
  (void) arg;
  for (;;) {
    nng_msg *msg;
    int rv = nng_recvmsg(sock, &msg, 0);
    if (rv == NNG_ECLOSED || rv == NNG_ENOTSUP) return;
    if (rv != 0) {
      nng_msleep(5);
      continue;
    }
    show(nng_msg_body(msg), nng_msg_len(msg));
    if (!echo || nng_sendmsg(sock, msg, 0) != 0) nng_msg_free(msg);
  }
}

static int open_socket(const char *name) {
  struct {
    const char *name;
    int (*open)(nng_socket *);
  } rows[] = {
      {"pair0", nng_pair0_open}, {"pair1", nng_pair1_open}, {"pub0", nng_pub0_open},   {"sub0", nng_sub0_open},
      {"push0", nng_push0_open}, {"pull0", nng_pull0_open}, {"req0", nng_req0_open},   {"rep0", nng_rep0_open},
      {"bus0", nng_bus0_open},   {"surveyor0", nng_surveyor0_open}, {"respondent0", nng_respondent0_open},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (strcmp(rows[i].name, name) == 0) return rows[i].open(&sock);
  return NNG_ENOTSUP;
}

static void fail(const char *what, int rv) {
  fprintf(stderr, "%s: %s\n", what, nng_strerror(rv));
  exit(1);
}

int main(int argc, char **argv) {
  int rv;
  if (argc < 4) return 2;
  for (int i = 4; i < argc; i++) {
    if (strcmp(argv[i], "--json") == 0) json = 1;
    if (strcmp(argv[i], "--trace") == 0) trace = 1;
    if (strcmp(argv[i], "--echo") == 0) echo = 1;
  }
  if ((rv = open_socket(argv[1])) != 0) fail("open", rv);
  nng_mtx_alloc(&out);
  nng_pipe_notify(sock, NNG_PIPE_EV_ADD_POST, peer, NULL);
  nng_pipe_notify(sock, NNG_PIPE_EV_REM_POST, peer, NULL);
  nng_setopt_ms(sock, NNG_OPT_RECONNMINT, 100);
  nng_setopt_ms(sock, NNG_OPT_RECONNMAXT, 5000);
  nng_setopt_int(sock, NNG_OPT_RECVBUF, 2048);
  nng_setopt_int(sock, NNG_OPT_SENDBUF, 2048);
  nng_setopt_size(sock, NNG_OPT_RECVMAXSZ, 4 << 20);
  if (strcmp(argv[1], "sub0") == 0) nng_setopt(sock, NNG_OPT_SUB_SUBSCRIBE, "", 0);
  if (strcmp(argv[2], "listen") == 0) rv = nng_listen(sock, argv[3], NULL, 0);
  else rv = nng_dial(sock, argv[3], NULL, NNG_FLAG_NONBLOCK);
  if (rv != 0) fail(argv[3], rv);
  printf("ready\n");
  fflush(stdout);
  nng_thread *thread;
  nng_thread_create(&thread, receive, NULL);

  static char line[8 << 20];
  char *text = line + 26;
  while (fgets(text, (int) (sizeof line - 26), stdin) != NULL) {
    size_t size = strcspn(text, "\n");
    char *from = text;
    if (trace) {
      from -= 26;
      from[0] = 0x0a;
      from[1] = (char) 0xce;
      memset(from + 2, 1, 16);
      memset(from + 18, 2, 8);
    }
    if ((rv = nng_send(sock, from, size + (size_t) (text - from), 0)) != 0) fail("send", rv);
  }
  nng_msleep(200);
  nng_close(sock);
  return 0;
}
