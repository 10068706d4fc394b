// Entry of the console pages: theme, language, address, then who is logged in; draws into #app. Loaded by index.html.
//
// Map (made by `make docs`):
//   lib/accounts.ts            MQTT users, groups and roles as the REST API has them, and as forms hold them
//   lib/answers.ts             What the gateway says, in Chinese
//   lib/api.ts                 Calls of the REST API, and who is logged in
//   lib/bars.ts                A distribution as bars, one for each bucket
//   lib/binary.ts              Payloads that are CBOR or MessagePack, as JSON text
//   lib/bridgedoc.ts           A bridge's document as a form holds it, and back; which field a problem belongs to
//   lib/bytes.ts               Payloads and frames as bytes: base64, hex, text, JSON
//   lib/chinese.ts             The texts of the pages in Chinese, by the English ones
//   lib/chineseadmin.ts        The texts of what admins set up, in Chinese: connections of bridges, TLS, certificates
//   lib/chineseanswers.ts      What the gateway answers, in Chinese: refusals, problems of fields, steps of a test
//   lib/chinesekeys.ts         The descriptions of all configuration keys in Chinese
//   lib/chinesekeysbridges.ts  The descriptions of configuration keys in Chinese, by the English ones
//   lib/chinesekeysbroker.ts   The descriptions of configuration keys in Chinese, by the English ones: listeners
//   lib/chinesekeysproxy.ts    The descriptions of configuration keys in Chinese, by the English ones: the proxy
//   lib/chinesepast.ts         The texts of what looks back, in Chinese: recording, events, charts of the past
//   lib/format.ts              Numbers, sizes, times as people read them
//   lib/formdoc.ts             What the forms of both kinds of bridges have in common on the way to a document and back
//   lib/frame.ts               Which bytes of a bridge's frame are topic, delimiter and payload
//   lib/history.ts             Figures of the past and what happened, as the charts draw them
//   lib/jsonleaves.ts          The single values of a JSON document by their paths
//   lib/keep.ts                Whether changes made here are written to tidegate.d, so that they hold after a restart
//   lib/live.ts                Server-sent events as the pages use them: one stream of counters
//   lib/rates.ts               Counters over time as rates: a bounded series of samples for charts
//   lib/remotedoc.ts           The document of a bridge to a remote broker as a form holds it, and back
//   lib/route.ts               Which page is shown: the part of the address behind "#/"
//   lib/ruledoc.ts             The document of a rule as a form holds it, and back; which field a problem belongs to
//   lib/settings.ts            The effective configuration beside its defaults, key by key
//   lib/store.ts               A value that pages watch
//   lib/templates.ts           Messages that somebody publishes again and again, kept by name in the browser
//   lib/theme.ts               Light, dark, or what the system says
//   lib/tlsdoc.ts              The TLS keys of a bridge to a remote broker as a form holds them, and back
//   lib/topicfilter.ts         Whether a text may be a topic filter (MQTT 5.0 section 4.7)
//   lib/topictree.ts           Topics and topic filters as a tree of levels, with the traffic of each level
//   lib/tracks.ts              What a bridge carries which way: its rules with their counters
//   lib/types.ts               Documents of the REST API as the pages read them
//   lib/userproperties.ts      User Properties as lines "name: value" in a form, and as the REST API takes them
//   lib/words.ts               The language of the pages
//   pages/bridgedialog.tsx     The window in which a bridge is added or changed: an NNG bridge
//   pages/bridgeform.tsx       Adding and changing an NNG bridge: its addresses and rules, each rule with its tester
//   pages/bridgeframe.tsx      What surrounds the fields of a bridge, whatever its kind: the list of its rules
//   pages/bridges.tsx          Bridges: each as a picture of its flow with live rates; add, change, switch, remove
//   pages/certificates.tsx     The alarm of certificates on the overview: those that have expired
//   pages/clients.tsx          Clients: search, order, pages; one client with its subscriptions
//   pages/configuration.tsx    Configuration: every value that holds now beside its default, with its text
//   pages/connectiontest.tsx   Test connection: what the gateway finds on its way to the other side of a bridge
//   pages/events.tsx           Events: what happened before, over restarts: starts, changes and by whom, bridges
//   pages/lastvalue.tsx        The last message of a topic while somebody looks: its payload
//   pages/log.tsx              Log: the last lines and those that come, by level and text
//   pages/login.tsx            Logging in by user and password, or with a token where the gateway takes tokens
//   pages/messages.tsx         Messages: what is published on topic filters, live, with payloads as text, JSON, hex
//   pages/mqttdialogs.tsx      The windows in which an MQTT user, a group or a role is added or changed
//   pages/mqttusers.tsx        MQTT users: who may connect, in which groups
//   pages/overview.tsx         Overview: what goes in and out now and in the last ten minutes
//   pages/proxy.tsx            Proxy: pools with the health of their servers
//   pages/publish.tsx          Publishing a message through the API
//   pages/recording.tsx        Recording: what is recorded, messages of the past by topic filter and time
//   pages/remoteform.tsx       Adding and changing a bridge to a remote broker: where it is, as whom
//   pages/replays.tsx          Recorded messages published again
//   pages/requestfields.tsx    The fields of bridges for requests: rules of a req bridge, topics of a rep bridge
//   pages/ruleform.tsx         Adding and changing a rule: what it takes, its expressions
//   pages/rules.tsx            Rules: what each takes, asks, builds and where it sends, with its counters; add, change
//   pages/ruletester.tsx       What a rule would do with one message or frame, byte by byte
//   pages/ruletrial.tsx        What a rule would do with one message, or does with the messages of the next seconds
//   pages/security.tsx         Security: who may come in through which listener, what decides on rights
//   pages/tlsfields.tsx        The TLS fields of a bridge to a remote broker: authority
//   pages/topicdetail.tsx      One topic of the topic page: how much comes on it, its retained value, who gets it
//   pages/topichistory.tsx     What was recorded of one topic: its messages, and a number of them over time
//   pages/topics.tsx           Topics: what is published, retained messages and subscriptions as one tree of levels
//   pages/webusers.tsx         Security: who may use this console and the API, with which role; adding
//   site/search.ts             The search of the documentation site, in the browser
//   site/words.ts              How the documentation is searched: what is a word, and what counts more
//   ui/chart.tsx               One chart over time, drawn by uPlot on a canvas
//   ui/flow.tsx                The picture of a bridge: what it takes from MQTT, its rules, and the other side
//   ui/framebytes.tsx          A frame byte by byte, each in the colour of its part
//   ui/histogram.tsx           A distribution of times as bars; what each comes to is said in words too
//   ui/icons.tsx               The pictures of the console: strokes on a field of 24 by 24, in the colour of the text
//   ui/identifier.tsx          A long name on one line: its beginning and its end stay readable, the middle gives way
//   ui/keepcheck.tsx           The choice whether changes are kept; nothing where they cannot be
//   ui/parts.tsx               Small pieces that all pages are made of: buttons, badges, fields, panels, notices
//   ui/shell.tsx               The frame around every page: head with switches, list of pages, the page itself
//   ui/toast.tsx               Short notices at the edge of the page: what was done, what failed
import { render } from 'preact';
import 'uplot/dist/uPlot.min.css';
import './style.css';
import { whoAmI } from './lib/api.ts';
import { startRoute } from './lib/route.ts';
import { startTheme } from './lib/theme.ts';
import { language } from './lib/words.ts';
import { App } from './ui/shell.tsx';

startTheme();
startRoute();
document.documentElement.lang = language.get();
const root = document.getElementById('app');
if (root !== null) render(<App />, root);
whoAmI().catch(() => {});
