// The descriptions of configuration keys in Chinese, by the English ones: bridges and rules.
// Data, part of chinesekeys.ts. A test finds what is missing.

export const BRIDGE_KEYS: Readonly<Record<string, string>> = {
  "Which behaviour to follow where they differ: NanoMQ's documentation, or one of its releases.":
    '行为不同时遵循哪一个：NanoMQ 的文档，或其某个版本。',
  'Whether the bridge runs. Absent = off (with compat 0.25.5 or 0.25.6: on).':
    '桥接是否运行。未设置 = 停用（compat 为 0.25.5 或 0.25.6 时：启用）。',
  'Defaults that suit a known peer: URL, mode, frame, trace, overflow, spool and qos.':
    '适合已知对端的默认值：URL、mode、frame、trace、overflow、spool 和 qos。',
  'listen: wait for peers. dial: connect to a peer and keep retrying.': 'listen：等待对端。dial：连接对端并不断重试。',
  'Client id used for permissions and loop detection. Absent = a random one.':
    '用于权限和循环检测的客户端 ID。未设置 = 随机。',
  'SP implementation: native, or the C library of the package nanomsg.': 'SP 实现：native，或 nanomsg 包的 C 库。',
  'Largest frame accepted; a peer that announces a larger one is disconnected. 0 = no limit.':
    '接受的最大帧；声明更大帧的对端会被断开。0 = 不限。',
  'Longest delay between two attempts to connect or listen.': '两次连接或监听尝试之间的最长延迟。',
  'Permissions of ipc sockets, octal.': 'ipc 套接字的权限，八进制。',
  'Group of ipc sockets, a name or number.': 'ipc 套接字的组，名称或编号。',
  'Trusted certificate authorities, PEM: a file, a folder prepared with `openssl rehash`, or the PEM text itself. Absent = those of the system.':
    '受信任的 CA，PEM：文件、用 `openssl rehash` 准备的文件夹，或 PEM 文本本身。未设置 = 系统的 CA。',
  'Client certificate, PEM: a file, or the text itself.': '客户端证书，PEM：文件，或文本本身。',
  'Private key of the client certificate, PEM: a file, or the text itself, which is then shown as "***".':
    '客户端证书的私钥，PEM：文件，或文本本身（显示为 "***"）。',
  'Verify the certificate and name of the server.': '验证服务器的证书和名称。',
  'Server name to request (SNI) and to verify. Absent = the host of the address.':
    '请求（SNI）并验证的服务器名。未设置 = 地址中的主机名。',
  'With verify: whether the certificate must match that name. false = any certificate from a trusted authority is accepted.':
    '与 verify 一起使用：证书是否必须与该名称匹配。false = 接受受信任机构签发的任何证书。',
  'URLs on which the publisher socket listens or which it dials: one or several.':
    '发布套接字监听或连接的 URL：一个或多个。',
  'Largest size of the send queue of one peer, in bytes.': '一个对端发送队列的最大字节数。',
  'When the queue of a peer is full: drop messages for that peer, or slow down publishers of QoS 1 and 2.':
    '对端队列已满时：丢弃给该对端的消息，或放慢 QoS 1 和 2 的发布者。',
  'Bytes of frames kept while no peer is connected (rules with qos 1 or 2); with persistence also across restarts. 0 = none.':
    '没有对端连接时保留的帧的字节数（qos 为 1 或 2 的规则）；启用持久化时重启后仍保留。0 = 不保留。',
  'MQTT topic filter of the messages to send.': '要发送的消息的 MQTT 主题过滤器。',
  'Topic at the start of the frame; empty = the topic of the message.': '帧开头的主题；空 = 消息的主题。',
  'Separator between topic and payload, any UTF-8 text; empty = "/". Write a NUL as \\u0000.':
    '主题与消息内容之间的分隔符，任意 UTF-8 文本；空 = "/"。NUL 写作 \\u0000。',
  'Highest QoS used by the rule. Above 0, the publisher is acknowledged only once the frame is queued for every peer.':
    '规则使用的最高 QoS。大于 0 时，帧进入每个对端的队列后才向发布者确认。',
  'any: also publishes with RETAIN. live: only publishes without RETAIN. retained: as any, and the stored messages when the bridge starts.':
    'any：也包括带 RETAIN 的发布。live：仅不带 RETAIN 的发布。retained：同 any，且桥接启动时发送已保存的保留消息。',
  'Origin of the messages. mqtt: excludes messages from other bridges.': '消息的来源。mqtt：不包括来自其他桥接的消息。',
  'Encoding of the payload. raw: unchanged. base64: as Base64 text. json: an object with topic, qos, retain and payload.':
    '消息内容的编码。raw：不变。base64：Base64 文本。json：包含 topic、qos、retain 和 payload 的对象。',
  'Content of a frame. topic: topic, delimiter and payload. payload: only the payload, as eKuiper and Neuron use it.':
    '帧的内容。topic：主题、分隔符和消息内容。payload：仅消息内容，eKuiper 和 Neuron 使用这种形式。',
  'Trace header (26 bytes) in front of the payload: strip = remove, keep = leave as it is, add = insert one with the ids of the User Property traceparent, or with new ids.':
    '消息内容之前的跟踪头（26 字节）：strip = 去除，keep = 保持不变，add = 插入一个，ID 取自 User Property traceparent，没有则新建。',
  'Largest rate of the rule, messages per second; further ones are dropped and counted. 0 = no limit.':
    '规则的最大速率，每秒消息数；超出的被丢弃并计数。0 = 不限。',
  'URLs on which the subscriber socket listens or which it dials: one or several.':
    '订阅套接字监听或连接的 URL：一个或多个。',
  'Required start of a frame.': '帧必须具有的开头。',
  'MQTT topic to publish to; may contain {topic}, {suffix} and {json:field}. Empty = the topic found in the frame.':
    '要发布到的 MQTT 主题；可包含 {topic}、{suffix} 和 {json:field}。空 = 帧中的主题。',
  'QoS of the publish.': '发布的 QoS。',
  'Whether the publish is retained.': '发布是否保留。',
  'What may follow remote_topic before the delimiter. prefix: anything. level: further topic levels only. exact: nothing.':
    'remote_topic 之后、分隔符之前允许的内容。prefix：任意。level：仅更多主题层级。exact：无。',
  'Encoding of the payload. raw: unchanged. base64: is decoded. json: the member payload of an object.':
    '消息内容的编码。raw：不变。base64：解码。json：对象的成员 payload。',
  'Trace header (26 bytes) in front of the payload: strip = remove, keep = leave as it is, add = insert one where there is none. A header removed by strip becomes the User Property traceparent.':
    '消息内容之前的跟踪头（26 字节）：strip = 去除，keep = 保持不变，add = 没有时插入。strip 去除的头成为 User Property traceparent。',
  'Topic used when a {json:} field of local_topic is missing. Empty = the frame is dropped and counted.':
    'local_topic 的 {json:} 字段缺失时使用的主题。空 = 丢弃该帧并计数。',
  'URLs on which the push socket listens or which it dials: one or several.':
    'push 套接字监听或连接的 URL：一个或多个。',
  'URLs on which the pull socket listens or which it dials: one or several.':
    'pull 套接字监听或连接的 URL：一个或多个。',
  'URLs on which the pair socket listens or which it dials: one or several.':
    'pair 套接字监听或连接的 URL：一个或多个。',
  'SP protocol; the peer must use the same.': 'SP 协议；对端必须使用相同的协议。',
  'URLs on which the req socket listens or which it dials: one or several.': 'req 套接字监听或连接的 URL：一个或多个。',
  'Largest size of the requests awaiting a reply, in bytes.': '等待应答的请求的最大字节数。',
  'MQTT topic filter of the requests.': '请求的 MQTT 主题过滤器。',
  'Content of a frame. payload: only the payload. topic: topic, delimiter and payload.':
    '帧的内容。payload：仅消息内容。topic：主题、分隔符和消息内容。',
  'With frame = topic: topic at the start of the frame; empty = the topic of the message.':
    'frame = topic 时帧开头的主题；空 = 消息的主题。',
  'Time allowed for the reply; after that, the requester gets an error.': '应答允许的时间；超时后请求者得到错误。',
  'Topic for replies to requests without Response Topic; {1} is the level matched by the first wildcard. Empty = such requests are dropped.':
    '没有 Response Topic 的请求的应答主题；{1} 为第一个通配符匹配的层级。空 = 丢弃这样的请求。',
  'QoS of the reply.': '应答的 QoS。',
  'URLs on which the rep socket listens or which it dials: one or several.': 'rep 套接字监听或连接的 URL：一个或多个。',
  'Topics that requests may read or publish to.': '请求可以读取或发布的主题。',
  'Whether requests may publish.': '请求是否可以发布。',
  'Whether the bridge runs.': '桥接是否运行。',
  'Remote broker: mqtt-tcp://host:port or tls+mqtt-tcp://host:port.':
    '远端代理：mqtt-tcp://host:port 或 tls+mqtt-tcp://host:port。',
  'MQTT version: 3, 4 (3.1.1) or 5.': 'MQTT 版本：3、4（3.1.1）或 5。',
  'Client id at the remote broker. Absent = a random one.': '在远端代理的客户端 ID。未设置 = 随机。',
  'Username at the remote broker.': '在远端代理的用户名。',
  'Password at the remote broker.': '在远端代理的密码。',
  'Keep alive. 0 = none.': '保活时间。0 = 不使用。',
  'Longest delay between two attempts to connect.': '两次连接尝试之间的最长延迟。',
  'Start a clean session at the remote broker.': '在远端代理以新会话开始。',
  'Also make the subscriptions of local clients at the remote broker.': '也在远端代理进行本地客户端的订阅。',
  'Keep QoS 0 messages while the remote broker is unreachable.': '远端代理不可达时保留 QoS 0 消息。',
  'Identify as a bridge to the remote broker (bit 0x80 of the protocol version), so that it sends nothing back.':
    '向远端代理表明自己是桥接（协议版本的 0x80 位），使其不回送消息。',
  'With MQTT 5: mark forwarded messages (User Property tidegate-via), and do not forward messages that carry this mark.':
    'MQTT 5：给转发的消息加标记（User Property tidegate-via），且不转发带有此标记的消息。',
  'Session Expiry Interval.': '会话过期间隔（Session Expiry Interval）。',
  'Receive Maximum.': 'Receive Maximum。',
  'Topic Alias Maximum.': 'Topic Alias Maximum。',
  'Maximum Packet Size. 0 = no limit.': 'Maximum Packet Size。0 = 不限。',
  'Request Problem Information (NanoMQ spells the key this way).':
    'Request Problem Information（键名按 NanoMQ 的拼写）。',
  'Request Response Information (NanoMQ spells the key this way).':
    'Request Response Information（键名按 NanoMQ 的拼写）。',
  'User properties (MQTT 5).': '用户属性（MQTT 5）。',
  'Topic.': '主题。',
  'Payload.': '消息内容。',
  'QoS.': 'QoS。',
  'RETAIN flag.': 'RETAIN 标志。',
  'Payload Format Indicator.': 'Payload Format Indicator。',
  'Message Expiry Interval. 0 = none.': '消息过期间隔（Message Expiry Interval）。0 = 无。',
  'Will Delay Interval.': '遗嘱延迟间隔（Will Delay Interval）。',
  'Content Type.': 'Content Type。',
  'Response Topic.': 'Response Topic。',
  'Correlation Data.': 'Correlation Data。',
  'Whether TLS is used.': '是否使用 TLS。',
  'Pre-shared key in hexadecimal, instead of certificates. Requires psk_identity.':
    '十六进制的预共享密钥，代替证书。需要 psk_identity。',
  'Identity that psk belongs to.': 'psk 所属的标识。',
  'ALPN protocol names to request; empty = no ALPN.': '请求的 ALPN 协议名；空 = 不使用 ALPN。',
  'TCP_NODELAY; always on.': 'TCP_NODELAY；始终开启。',
  'TCP keep-alive; always on.': 'TCP 保活；始终开启。',
  'Local address or interface to connect from.': '发起连接的本地地址或网络接口。',
  'Largest packet to send; larger messages are dropped and counted. 0 = the limit of the remote broker.':
    '要发送的最大报文；更大的消息被丢弃并计数。0 = 远端代理的上限。',
  'Topic. Absent = $SYS/broker/connection/<clientid>/state.':
    '主题。未设置 = $SYS/broker/connection/<clientid>/state。',
  'Publish the state only locally, not at the remote broker.': '仅在本地发布状态，不在远端代理发布。',
  'Whether the state is retained at the remote broker.': '状态在远端代理是否保留。',
  'Topic at the remote broker; may contain {json:field}. Empty = unchanged.':
    '远端代理上的主题；可包含 {json:field}。空 = 不变。',
  'QoS; absent = as published.': 'QoS；未设置 = 与发布时相同。',
  'Highest QoS used for sending; messages with a higher QoS are sent with this one.':
    '发送时使用的最高 QoS；更高 QoS 的消息以此发送。',
  'RETAIN flag; absent = as published.': 'RETAIN 标志；未设置 = 与发布时相同。',
  'Also send the matching retained messages each time the bridge connects.': '桥接每次连接时，也发送匹配的保留消息。',
  'Topic used when a {json:} field of remote_topic is missing. Empty = the message is dropped and counted.':
    'remote_topic 的 {json:} 字段缺失时使用的主题。空 = 丢弃该消息并计数。',
  'Put before the topic.': '加在主题之前。',
  'Put after the topic.': '加在主题之后。',
  'Topic filter at the remote broker.': '远端代理上的主题过滤器。',
  'Local topic to publish to; may contain {json:field}. Empty = unchanged.':
    '要发布到的本地主题；可包含 {json:field}。空 = 不变。',
  'QoS of the subscription.': '订阅的 QoS。',
  'RETAIN flag; absent = as received.': 'RETAIN 标志；未设置 = 与接收时相同。',
  'Retain As Published (MQTT 5).': 'Retain As Published（MQTT 5）。',
  'Retain Handling (MQTT 5).': 'Retain Handling（MQTT 5）。',
  'No Local (MQTT 5): excludes messages sent by this bridge.': 'No Local（MQTT 5）：不包括该桥接自己发送的消息。',
  'Topic used when a {json:} field of local_topic is missing. Empty = the message is dropped and counted.':
    'local_topic 的 {json:} 字段缺失时使用的主题。空 = 丢弃该消息并计数。',
  'Subscription Identifier.': 'Subscription Identifier。',
  'Largest number of unacknowledged QoS 1 and 2 messages. 0 = the Receive Maximum of the remote broker with MQTT 5, else 19; fewer if the remote broker closes the connection because of them.':
    '未确认的 QoS 1 和 2 消息的最大数量。0 = MQTT 5 时为远端代理的 Receive Maximum，否则为 19；远端代理因此断开时会减少。',
  'Messages kept while the remote broker is unreachable. 0 = no limit.': '远端代理不可达时保留的消息数。0 = 不限。',
  'Messages received and not yet published. 0 = no limit.': '已接收但尚未发布的消息数。0 = 不限。',
  'After this time without an acknowledgement, the bridge pings the remote broker.':
    '超过此时间没有确认时，桥接向远端代理发送 PING。',
  'Time allowed for the CONNACK and for the answer to a ping.': 'CONNACK 和 PING 应答允许的时间。',
  'Whether hybrid_servers are tried as well.': '是否也尝试 hybrid_servers。',
  'Further servers, tried in order after server.': '其他服务器，在 server 之后依次尝试。',
  'MQTT topic filters, or nng:<bridge> for messages from that NNG bridge.':
    'MQTT 主题过滤器，或 nng:<bridge> 表示来自该 NNG 桥接的消息。',
  'CEL condition over topic, payload, qos, retain, clientId, username, properties and now. Only messages for which it is true are processed. Empty = all.':
    '对 topic、payload、qos、retain、clientId、username、properties 和 now 的 CEL 条件。仅处理结果为真的消息。空 = 全部。',
  'The new JSON payload: each key with a CEL expression; "*" copies all fields of an object. Empty = the payload is unchanged.':
    '新的 JSON 消息内容：每个键对应一个 CEL 表达式；"*" 复制对象的所有字段。空 = 消息内容不变。',
  'Type of payload in expressions. auto: JSON if valid, else text, else bytes. json: other messages are dropped and counted.':
    '表达式中消息内容的类型。auto：有效时为 JSON，否则为文本，再否则为字节。json：其他消息被丢弃并计数。',
  'Topic of the result; {1} is the level matched by the first wildcard, {topic} the topic, {json:a.b} a field of the payload.':
    '结果的主题；{1} 为第一个通配符匹配的层级，{topic} 为主题，{json:a.b} 为消息内容的字段。',
  'Topic used when a {json:} field of to is missing. Empty = the message is dropped and counted.':
    'to 的 {json:} 字段缺失时使用的主题。空 = 丢弃该消息并计数。',
  'Name of a sending NNG bridge. The result is sent there, in the frame format of its first rule, and not published.':
    '发送用 NNG 桥接的名称。结果按其第一条规则的帧格式发送到那里，不发布。',
  'Also send the result to the webhook, as on_message_publish.': '也将结果作为 on_message_publish 发送到 Webhook。',
  'QoS of the result. Absent = that of the message.': '结果的 QoS。未设置 = 与消息相同。',
  'RETAIN flag of the result.': '结果的 RETAIN 标志。',
  'CEL expression. Only messages for which its value differs from that of the previous message on the same topic are processed. Empty = all.':
    'CEL 表达式。仅处理其值与同一主题上一条消息不同的消息。空 = 全部。',
  'Smallest difference that counts for changed, for numbers. 0 = any difference.':
    '数值被视为变化的最小差值。0 = 任何差值。',
  'At most one message per topic in this time; the last one is kept and sent at its end. 0 = off.':
    '此时间内每个主题最多一条消息；保留最后一条并在结束时发送。0 = 关闭。',
  'Modules whose hooks decide on clients and messages: docs/embedding.md. Loaded only if they and their folders belong to root or the user of the gateway and others cannot change them.':
    '其钩子对客户端和消息作出决定的模块：docs/embedding.md。仅当模块及其文件夹属于 root 或网关用户且他人无法修改时才加载。',
};
