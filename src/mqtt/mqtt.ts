// SEAM of mqtt/: the vocabulary of MQTT 3.1, 3.1.1 and 5.0 as pure data and functions: packets, properties, reason
// codes, topics, messages. Knows no bytes (codec/) and no connections (transport/). Import from where a thing is made.
//
// Map (made by `make docs`):
//   arrival.ts      How a client came (Arrival) as one JSON text and back
//   clientid.ts     Client Identifiers that no client can have
//   message.ts      An Application Message in its two lives
//   packet.ts       The Control Packets of MQTT 3.1, 3.1.1 and 5.0 as plain objects, and their type numbers
//   property.ts     MQTT 5.0 properties as data (section 2.2.2.2): one row each with identifier
//   reason.ts       MQTT 5.0 reason codes by name (section 2.4) and what an older client is told instead
//   template.ts     Topics with placeholders: {1} {2} ..
//   topic.ts        Topic Names and Topic Filters (MQTT 5.0 sections 4.7 and 4.8.2, 3.1.1 section 4.7): validity
//   traceparent.ts  The trace that a message belongs to, as W3C Trace Context writes it
//   varint.ts       The Variable Byte Integer (MQTT 5.0 section 1.5.5): 7 bits a byte, least significant first
