// SEAM of base/: the leaf tools that every other folder may use. There is no state here and no import from another
// folder. Each file stands for itself; import from where a thing is made.
//
// Map (made by `make docs`):
//   accounts.ts       Users, groups and roles that are managed at run time, as data
//   accountsfile.ts   The file of users, groups and roles that are managed at run time
//   brief.ts          Text from outside where it is only remembered or shown
//   brokerurl.ts      The URL of an MQTT broker: the one grammar for configuration, REST and dialling
//   ciphers.ts        The cipher suites that servers of the gateway take unless the configuration names others
//   clock.ts          Time as a dependency, so that tests own it (test/harness/clock.ts has the fake one)
//   errors.ts         The one table of failures: a stable code, the exit code a command ends with
//   inorder.ts        Answers that leave in the order in which their requests came
//   json.ts           JSON with exact integers
//   ledger.ts         What everything costs that peers make the gateway keep: one place that counts it
//   linearpattern.ts  A pattern of the linear engine that is also bounded in time
//   linewriter.ts     Writes lines to a descriptor without ever waiting for it: one write at a time
//   log.ts            The seam to logging: level, stable id, fields
//   logger.ts         The Log of a running gateway, on pino
//   logtail.ts        The last log lines in memory, for the console and the event stream
//   messages.ts       Every log line there is: a stable id and what it means
//   metrics.ts        Metrics are declared once (name, text, type, unit) and shown everywhere from this registry
//   networks.ts       Addresses and networks of a configuration as a test for a peer's address
//   passwordhash.ts   Password hashes as mosquitto writes them, as text: the one grammar for password files
//   pem.ts            Keys and certificates as configurations name them: a path, or the PEM text itself
//   post.ts           One POST request after the other to an HTTP service, over connections that stay open
//   queue.ts          A first-in first-out queue on a ring: push and shift are O(1) and leave no garbage behind
//   runfolder.ts      Where running gateways of this machine have their control sockets
//   service.ts        What everything long-lived looks like: constructors assign, start() acts
//   sharedbytes.ts    Bytes that nobody writes to for now, sent by several writers without a copy for each
//   slab.ts           Memory for the many small pieces that outlive the chunk they came in: cut from slabs
//   systemerror.ts    What the operating system said, in words
//   tlsvariables.ts   Names of what a client's TLS and certificate say, as configurations write them: in templates
//   turn.ts           One write per peer per turn
//   words.ts          Copies of short pieces between buffers that are used again and again, eight bytes at a time
//   writer.ts         The output side of one peer
