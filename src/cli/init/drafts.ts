// The configurations that `tidegate init` writes, with their comments and what to do next. Read by init.ts. A test
// checks each with `tidegate check` and starts it. FILE stands for the name of the written file.

export type DraftKind = 'local' | 'ekuiper' | 'central' | 'mosquitto';

export interface Draft {
  readonly about: string;
  readonly text: string;
  readonly next: readonly string[];
}

const HEAD = `# Every key with its text and default: docs/reference-config.md, or tidegate.reference.conf.
# Check a change with \`tidegate check -c FILE\`, the machine with \`tidegate doctor -c FILE\`; SIGHUP reloads.
`;

const CONSOLE = `
# The console and the REST API: http://127.0.0.1:8081. Without users only this machine gets in, as admin.
# To open it for others, set users first: docs/rest-api.md, "Users".
http_server { ip_addr = "127.0.0.1", port = 8081 }
`;

const STORE = `
# What was acknowledged is on the disk: sessions, queued and retained messages survive a restart and a power cut.
persistence {
  path = "data/tidegate.db"
  # Bytes of the database; when it is full, new QoS 1 and 2 messages are refused, not lost.
  max_size = 1GB
}
`;

const LOCAL = `# A gateway for the programs of this machine.
${HEAD}
# MQTT clients of this machine. Nobody else reaches it, so no password is asked for.
listeners.tcp { bind = "127.0.0.1:1883" }
${STORE}${CONSOLE}
# One bridge each way between MQTT and NNG processes; remove what you do not need.
# MQTT -> NNG: sensor/kitchen becomes the frame "sensors:21.5".
bridges.nng.pub.out {
  enable  = true
  pub_url = "ipc:///tmp/tidegate-out.ipc"
  forwards = [ { local_topic = "sensor/#", remote_topic = "sensors", nng_delimiter = ":", qos = 1 } ]
}
# NNG -> MQTT: the frame "result/average:21.4" is published on result/average.
bridges.nng.sub.in {
  enable  = true
  sub_url = "ipc:///tmp/tidegate-in.ipc"
  subscription = [ { remote_topic = "result", nng_delimiter = ":", qos = 1 } ]
}

log { level = info }
`;

const EKUIPER = `# MQTT for devices, eKuiper beside it: payloads of sensor/# go to eKuiper, its results come back.
${HEAD}
listeners.tcp { bind = "127.0.0.1:1883" }
${STORE}${CONSOLE}
# In eKuiper: a source and a sink of type neuron with url = "tcp://127.0.0.1:7081".
bridges.nng.pair.ekuiper {
  enable   = true
  # pair0, bare payloads, trace headers removed; messages wait (64 MB) while eKuiper is not running.
  preset   = ekuiper
  pair_url = "tcp://127.0.0.1:7081"
  # The payloads have to be JSON objects.
  forwards     = [ { local_topic = "sensor/#" } ]
  subscription = [ { local_topic = "ekuiper/result" } ]
}

log { level = info }
`;

const CENTRAL = `# A gateway at the edge: keeps messages while the link is down and passes them to a central broker over TLS.
${HEAD}
# Devices of this machine. For devices of the network set "0.0.0.0:1883" and, below, users.
listeners.tcp { bind = "127.0.0.1:1883" }
# auth { allow_anonymous = false, password_file = "passwd" }
${STORE}${CONSOLE}
bridges.mqtt.central {
  server    = "tls+mqtt-tcp://broker.example.org:8883"
  proto_ver = 5
  # The name of this gateway at the central broker; each needs its own.
  clientid  = "edge-1"
  # From the environment, so that no password stands here: CENTRAL_USER and CENTRAL_PASSWORD.
  username  = \${?CENTRAL_USER}
  password  = \${?CENTRAL_PASSWORD}

  # A durable session: the broker keeps what comes for us while the link is down, a day long.
  clean_start = false
  conn_properties { session_expiry_interval = 86400 }
  # QoS 0 messages wait as well; what may wait, in messages.
  retry_qos_0 = true
  max_send_queue_len = 100000

  ssl {
    # The certificate authority of the broker, PEM. Without this line: those of the system.
    # cacertfile = "central-ca.pem"
    # A certificate of our own, where the broker asks for one.
    # certfile = "edge-1.pem"
    # keyfile  = "edge-1.key"
  }

  # Local topics below plants/edge-1 there, and commands for us back.
  forwards     = [ { local_topic = "sensor/#", remote_topic = "plants/edge-1/sensor/#", qos = 1 } ]
  subscription = [ { remote_topic = "plants/edge-1/set/#", local_topic = "set/#", qos = 1 } ]
}

log { level = info }
`;

const MOSQUITTO = `# In the place of mosquitto: MQTT for the network with users and rights.
# An existing mosquitto.conf is taken over by \`tidegate convert mosquitto.conf -o FILE\` instead.
${HEAD}
listeners.tcp { bind = "0.0.0.0:1883" }

# MQTT over TLS: remove the # once certificate and key are there.
# listeners.ssl { bind = "0.0.0.0:8883", certfile = "server.pem", keyfile = "server.key" }
# MQTT over WebSocket, for browsers.
# listeners.ws { bind = "0.0.0.0:8083/mqtt" }

# Users and rights in the files that mosquitto has, in the same formats.
auth {
  allow_anonymous = false
  password_file   = "passwd"
  # acl_file      = "acl"
}
${STORE}${CONSOLE}
mqtt {
  # As mosquitto: messages of at most 256 MB are possible; this is what a client may send.
  max_packet_size = 1MB
  # Messages that wait for one client while it is away.
  max_mqueue_len = 1000
}

log { level = info }
`;

const CHECKED = ['tidegate doctor -c FILE', 'tidegate start -c FILE'];

export const DRAFTS: Readonly<Record<DraftKind, Draft>> = {
  local: { about: 'this machine only: MQTT and two NNG bridges', text: LOCAL, next: CHECKED },
  ekuiper: { about: 'MQTT with eKuiper on the same machine', text: EKUIPER, next: CHECKED },
  central: {
    about: 'an edge gateway that passes messages to a central broker over TLS',
    text: CENTRAL,
    next: ['in FILE: server, clientid, topics; CENTRAL_USER and CENTRAL_PASSWORD in the environment', ...CHECKED],
  },
  mosquitto: {
    about: "mosquitto's replacement: the network, with users and rights",
    text: MOSQUITTO,
    next: ['tidegate passwd -c passwd alice', ...CHECKED],
  },
};

export const KINDS = Object.keys(DRAFTS) as readonly DraftKind[];
