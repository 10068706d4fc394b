// The descriptions of configuration keys in Chinese, by the English ones: the proxy, the HTTP server, webhook and log.
// Data, part of chinesekeys.ts. A test finds what is missing.

export const PROXY_KEYS: Readonly<Record<string, string>> = {
  'Whether the proxy runs.': '代理服务器是否运行。',
  'Address and port to listen on, or a list of them.': '监听的地址和端口，或其列表。',
  'Protocol of the clients. ws and wss: MQTT over WebSocket. udp: forwards datagrams, one session per client address and port; requires preread = false.':
    '客户端的协议。ws 和 wss：WebSocket 上的 MQTT。udp：转发数据报，每个客户端地址和端口一个会话；需要 preread = false。',
  'Largest WebSocket message.': '最大的 WebSocket 消息。',
  'Idle time after which a UDP session ends.': 'UDP 会话的空闲结束时间。',
  'Use the common name of the client certificate as username.': '用客户端证书的通用名作为用户名。',
  'Expect a PROXY protocol header (version 1 or 2) first.': '首先应有 PROXY 协议头（版本 1 或 2）。',
  'Read CONNECT before a server is selected. off = plain TCP proxy to default.':
    '在选择服务器之前读取 CONNECT。off = 纯 TCP 转发到 default。',
  'Handling of connections that do not start with a CONNECT. pass = route without client id and forward unchanged.':
    '对不以 CONNECT 开始的连接的处理。pass = 无客户端 ID 路由并原样转发。',
  'Largest CONNECT.': '最大的 CONNECT。',
  'Time allowed for TLS and CONNECT.': 'TLS 和 CONNECT 允许的时间。',
  'Time allowed to connect to a server.': '连接服务器允许的时间。',
  'Idle time after which a session ends. auto = 1.5 times its keep alive plus 10 s. 0 = never.':
    '会话的空闲结束时间。auto = 其保活时间的 1.5 倍加 10 秒。0 = 从不。',
  'A side that has closed its sending direction may still receive. off = the session ends.':
    '已关闭发送方向的一端仍可接收。off = 会话结束。',
  'Largest number of servers tried for one client. 0 = all.': '为一个客户端尝试的最大服务器数。0 = 全部。',
  'Time within which another server may be tried. 0 = no limit.': '可以尝试另一台服务器的时间。0 = 不限。',
  'Reaction to a refused client. connack: send a CONNACK with the reason, then close.':
    '对被拒绝客户端的处理。connack：发送带原因的 CONNACK 后关闭。',
  'New client id.': '新的客户端 ID。',
  'New username.': '新的用户名。',
  'New password.': '新的密码。',
  'Condition to match: { field = "text", field = "~pattern", field = "~*pattern in any case" }, or "field op value" with == != =~ !~ =~* !~*. A network such as 10.0.0.0/8 matches every remote_addr in it. Fields: clientid, username, version, sni, listener, remote_addr, cert_cn, tls_version and the ssl_ names of templates.':
    '匹配条件：{ 字段 = "文本", 字段 = "~模式", 字段 = "~*不区分大小写的模式" }，或用 == != =~ !~ =~* !~* 的 "字段 运算符 值"。10.0.0.0/8 这样的网络匹配其中的每个 remote_addr。字段：clientid、username、version、sni、listener、remote_addr、cert_cn、tls_version 和模板的 ssl_ 名称。',
  'Name of an upstream, or local for the built-in broker. Either this or split is required.':
    '上游名称，或 local 表示内置代理。需要此项或 split。',
  'Share in percent, up to two decimals; * = the rest.': '百分比份额，最多两位小数；* = 其余。',
  'Name of an upstream, or local.': '上游名称，或 local。',
  'Template of the value to look up.': '要查找的值的模板。',
  'Ignore case when comparing texts, as NGINX does.': '比较文本时忽略大小写，与 NGINX 相同。',
  'Treat "*.suffix", ".suffix" and "prefix.*" as masks.': '将 "*.suffix"、".suffix" 和 "prefix.*" 视为掩码。',
  'Text, mask, "~pattern" or "~*pattern", each with the name of an upstream. If source is the variable remote_addr, networks such as 10.0.0.0/8 as well. Order: an equal text, the smallest network, the longest *. mask, the longest .* mask, the first pattern that matches.':
    '文本、掩码、"~模式" 或 "~*模式"，各对应一个上游名称。source 为变量 remote_addr 时也可用 10.0.0.0/8 这样的网络。顺序：相同文本、最小的网络、最长的 *. 掩码、最长的 .* 掩码、首个匹配的模式。',
  'Upstream if no value matches. Absent = the map selects none.': '没有值匹配时的上游。未设置 = 该映射不选择。',
  'Template of the value hashed by split.': 'split 所哈希的值的模板。',
  'Upstream for clients that no route, map or split matches. Absent = they are refused.':
    '没有路由、映射或 split 匹配的客户端的上游。未设置 = 拒绝。',
  'Topic filter.': '主题过滤器。',
  'Name of the upstream that these topics belong to.': '这些主题所属的上游名称。',
  'Template of the client id there. Default: the one that the upstream of the route gets.':
    '在那里使用的客户端 ID 的模板。默认：与路由的上游得到的相同。',
  'A server of a connected client is lost. close: the client is closed. refuse: its topics are refused until it is back. wait: they wait for it, within max_held_bytes.':
    '已连接客户端的服务器丢失时。close：关闭客户端。refuse：在恢复之前拒绝其主题。wait：在 max_held_bytes 内等待。',
  'Sessions with servers that one client may have.': '一个客户端可拥有的服务器会话数。',
  'Largest packet, to and from clients.': '往来客户端的最大报文。',
  'Bytes held for one client: packets that are not complete, and what waits for a server.':
    '为一个客户端保存的字节：不完整的报文和等待服务器的内容。',
  'Bytes held for all clients of this proxy.': '为该代理服务器的所有客户端保存的字节。',
  'Largest number of connections. 0 = no limit.': '最大连接数。0 = 不限。',
  'Largest number of connections of one address. 0 = no limit.': '一个地址的最大连接数。0 = 不限。',
  'Largest number of connections of one client id. 0 = no limit.': '一个客户端 ID 的最大连接数。0 = 不限。',
  'Largest number of connections of one username. 0 = no limit.': '一个用户名的最大连接数。0 = 不限。',
  'Largest rate of accepted CONNECT packets. 0 = no limit.': '接受 CONNECT 报文的最大速率。0 = 不限。',
  'Clients that match one of these are refused.': '匹配其中之一的客户端被拒绝。',
  'If not empty, clients that match none of these are refused.': '非空时，不匹配其中任何一个的客户端被拒绝。',
  'Read every packet and apply filter. off = bytes are forwarded unread.':
    '读取每个报文并应用 filter。off = 不读取直接转发。',
  'Template added in front of every topic to the server and removed on the way back, which isolates clients with different prefixes from each other.':
    '发往服务器时加在每个主题之前、返回时去掉的模板，使前缀不同的客户端相互隔离。',
  'Topics that may be published; empty = all.': '可以发布的主题；空 = 全部。',
  'Topics that may not be published.': '不可发布的主题。',
  'Subscriptions must stay within these; empty = all.': '订阅必须在这些范围内；空 = 全部。',
  'Subscriptions must not overlap these.': '订阅不得与这些重叠。',
  'Reaction to a PUBLISH that is not allowed. ignore = drop it, with a reason code where MQTT has one.':
    '对不允许的 PUBLISH 的处理。ignore = 丢弃，MQTT 支持时带原因码。',
  'Largest rate of PUBLISH packets of one client; further ones wait. 0 = no limit.':
    '一个客户端 PUBLISH 报文的最大速率；超出的等待。0 = 不限。',
  'User properties added to every PUBLISH of an MQTT 5 client; templates.':
    '添加到 MQTT 5 客户端每个 PUBLISH 的用户属性；模板。',
  'Path of the file.': '文件的路径。',
  'Form of a line; a list names the keys of a JSON object, a template is escaped like text.':
    '一行的形式；列表给出 JSON 对象的键，模板按文本转义。',
  'Size at which the file is renamed to <file>.1. 0 = never.': '文件达到此大小时改名为 <file>.1。0 = 从不。',
  'Number of old files to keep.': '保留的旧文件数。',
  'How a server is selected.': '如何选择服务器。',
  'Template of the value hashed by hash and consistent_hash.': 'hash 和 consistent_hash 所哈希的值的模板。',
  'Template of the key, such as the client id.': '键的模板，例如客户端标识符。',
  'How long a key is remembered after its last connection has ended.': '最后一个连接结束后键保留多久。',
  'Largest number of keys. Beyond it, the one that was used longest ago is forgotten.':
    '键的最大数量。超出时忘记最久未使用的键。',
  'Largest rate of connections of one address. 0 = no limit.': '一个地址的最大连接速率。0 = 不限。',
  'Largest rate of CONNECT packets of one client id. 0 = no limit.': '一个客户端标识符的 CONNECT 最大速率。0 = 不限。',
  'Connections of one address or client id that may come at once, where that is more than in a second.':
    '一个地址或客户端标识符可以同时到来的连接数，当它多于每秒的数量时适用。',
  'How long an address or client id that came too often is refused. 0 = until its rate allows it again.':
    '来得过于频繁的地址或客户端标识符被拒绝多久。0 = 直到其速率再次允许。',
  'Groups for the key exchange in OpenSSL notation, preferred first. Absent = the defaults of Node.js.':
    '密钥交换所用的组，OpenSSL 写法，首选在前。未设置 = Node.js 的默认值。',
  'Whether clients may take up a TLS session again.': '客户端是否可以恢复 TLS 会话。',
  'File of 48 random bytes that encrypt session tickets: sessions outlive a restart, and are taken up by other gateways with the same file. Absent = new keys at each start and reload.':
    '加密会话票据的 48 字节随机文件：会话在重启后仍可恢复，也可由使用同一文件的其他网关恢复。未设置 = 每次启动和重新加载都用新密钥。',
  'host:port, or unix:/path.': 'host:port，或 unix:/path。',
  'Share of connections.': '连接的份额。',
  'Used only when no other server is available.': '仅在没有其他服务器可用时使用。',
  'Never used.': '从不使用。',
  'Failures within fail_timeout after which the server is not used for fail_timeout. 0 = failures do not count.':
    '在 fail_timeout 内失败多少次后，该服务器在 fail_timeout 内不再使用。0 = 不计失败。',
  'Time window for max_fails, and time a failed server is not used.':
    'max_fails 的时间窗口，以及失败的服务器停用的时间。',
  'Source of the servers. dns: A and AAAA records. srv: SRV records. file: a JSON or TOML file. http: a document in the format of Prometheus http_sd. consul: the healthy instances of a service.':
    '服务器的来源。dns：A 和 AAAA 记录。srv：SRV 记录。file：JSON 或 TOML 文件。http：Prometheus http_sd 格式的文档。consul：服务的健康实例。',
  'Host name (dns), name of the SRV records (srv) or of the service (consul).':
    '主机名（dns）、SRV 记录名（srv）或服务名（consul）。',
  'Port of servers without a port in their address. Required with type dns.':
    '地址中没有端口的服务器的端口。type 为 dns 时必填。',
  'Name server, host:port. Absent = those of the system.': '域名服务器，host:port。未设置 = 系统的域名服务器。',
  'With type file: the file.': 'type 为 file 时：该文件。',
  'With type http: the document. With type consul: the address of its HTTP API.':
    'type 为 http 时：该文档。type 为 consul 时：其 HTTP API 的地址。',
  'Bearer token (http), or ACL token (consul).': 'Bearer 令牌（http），或 ACL 令牌（consul）。',
  'With type consul: only instances with this tag.': 'type 为 consul 时：仅带此标签的实例。',
  'With type consul: its datacenter.': 'type 为 consul 时：其数据中心。',
  'Label or metadata key that holds the weight of a server.': '保存服务器权重的标签或元数据键。',
  'Interval between queries; with types dns and srv, the TTL of the records applies.':
    '查询间隔；type 为 dns 和 srv 时使用记录的 TTL。',
  'Time allowed for an answer.': '应答允许的时间。',
  'tcp: connect only. mqtt: wait for a CONNACK.': 'tcp：仅连接。mqtt：等待 CONNACK。',
  'Interval between checks.': '检查间隔。',
  'Consecutive failures after which a server is unhealthy.': '连续失败多少次后服务器视为不健康。',
  'Consecutive successes after which it is healthy again.': '连续成功多少次后再次视为健康。',
  'With type mqtt: a CONNACK that refuses also counts as success.': 'type 为 mqtt 时：拒绝的 CONNACK 也算成功。',
  'With type mqtt: user name of the probe.': 'type 为 mqtt 时：探测的用户名。',
  'With type mqtt: password of the probe.': 'type 为 mqtt 时：探测的密码。',
  'Protocol of the servers. ws: MQTT over WebSocket, with tls wss.':
    '服务器的协议。ws：WebSocket 上的 MQTT，与 tls 一起为 wss。',
  'Path of the WebSocket request.': 'WebSocket 请求的路径。',
  'Time over which a recovered server returns to its full share. 0 = at once.':
    '恢复的服务器回到全部份额所用的时间。0 = 立即。',
  'How long resolved addresses of a host name are used. 0 = resolved once.':
    '主机名解析出的地址使用多长时间。0 = 只解析一次。',
  'Send a PROXY protocol header to the servers.': '向服务器发送 PROXY 协议头。',
  'Address to listen on. Without credentials, always loopback.': '监听的地址。没有凭据时始终为环回地址。',
  'Port to listen on.': '监听的端口。',
  'User name for basic authentication.': '基本认证的用户名。',
  'Password for basic authentication: plain, or a hash made by tidegate passwd.':
    '基本认证的密码：明文，或由 tidegate passwd 生成的哈希。',
  'Password: plain, or a hash made by tidegate passwd.': '密码：明文，或由 tidegate passwd 生成的哈希。',
  'viewer: read only. operator: also manage clients, messages and switches. admin: everything.':
    'viewer：只读。operator：还可操作客户端、消息和开关。admin：全部。',
  'Whether this user may log in.': '该用户是否可以登录。',
  'How requests are authenticated.': '如何认证请求。',
  'Public key for verifying tokens, PEM.': '验证令牌的公钥，PEM。',
  'Largest request body. 0 = no limit.': '最大的请求体。0 = 不限。',
  'Whether the HTTP server runs.': 'HTTP 服务器是否运行。',
  'Address and port.': '地址和端口。',
  'Authentication. basic: the credentials of http_server.': '认证。basic：http_server 的凭据。',
  'Whether events are sent.': '是否发送事件。',
  'URL that receives the events as POST requests.': '以 POST 请求接收事件的 URL。',
  'Encoding of payloads.': '消息内容的编码。',
  'Largest number of events in one request. 1 = one event per request, as NanoMQ sends them; more = always a JSON array of events.':
    '一个请求中的最大事件数。1 = 每个请求一个事件，与 NanoMQ 相同；更多 = 始终为事件的 JSON 数组。',
  'Longest time an event waits for the request to fill.': '事件等待请求填满的最长时间。',
  'Event to report.': '要报告的事件。',
  'For on_message_publish: topic filter of the messages.': '用于 on_message_publish：消息的主题过滤器。',
  'Whether traces and metrics are exported.': '是否导出追踪和指标。',
  'Address of the OpenTelemetry collector (OTLP over HTTP); /v1/traces and /v1/metrics are appended.':
    'OpenTelemetry 收集器的地址（HTTP 上的 OTLP）；会附加 /v1/traces 和 /v1/metrics。',
  'Headers to send to the collector.': '发送给收集器的请求头。',
  'Name of this gateway, as service.name.': '此网关的名称，即 service.name。',
  'Share of the messages without a traceparent that are traced: 0 = none, 0.001 = one in a thousand, 1 = all.':
    '没有 traceparent 的消息中被追踪的比例：0 = 无，0.001 = 千分之一，1 = 全部。',
  'Whether messages are traced whose traceparent says that they are sampled.':
    '是否追踪其 traceparent 标明已采样的消息。',
  'Largest number of messages traced per second; the others are counted and not traced.':
    '每秒追踪的最大消息数；其余的只计数，不追踪。',
  'Largest number of spans that wait for the collector; more are dropped and counted.':
    '等待收集器的最大跨度数；更多的被丢弃并计数。',
  'Largest number of spans in one request.': '一个请求中的最大跨度数。',
  'Longest time a span waits for the request to fill.': '跨度等待请求填满的最长时间。',
  'How often the metrics are exported. 0 = never.': '导出指标的间隔。0 = 从不。',
  'Time the collector is allowed for an answer.': '收集器回答的允许时间。',
  'Lowest level that is logged.': '记录的最低级别。',
  'Where log lines are written: console, file or both.': '日志写到哪里：控制台、文件或两者。',
  'Folder of the log file; empty = the working directory.': '日志文件的文件夹；空 = 工作目录。',
  'Name of the log file.': '日志文件的名称。',
  'Size at which the log file is rotated. 0 = never.': '日志文件轮换的大小。0 = 从不。',
  'Number of old files to keep. 0 = all.': '保留的旧文件数。0 = 全部。',
  'Format of log lines. auto: pretty on a terminal, else json.': '日志行的格式。auto：终端上为 pretty，否则为 json。',
  'Broker engine. aedes: MQTT 3.1 and 3.1.1 only and no persistence, but several gateways can form one broker.':
    '代理引擎。aedes：仅 MQTT 3.1 和 3.1.1 且无持久化，但多个网关可组成一个代理。',
  'Memory profile. small: for machines with 512MB or less. The heap grows in smaller steps, the store caches less, mqtt.memory_budget = 0 means an eighth of the memory (16MB to 64MB), and max_client_write_buffer and max_mqueue_bytes are at most 512KB and 2MB. Throughput is lower.':
    '内存配置。small：用于 512MB 或更少内存的机器。堆以更小的步长增长，存储缓存更少，mqtt.memory_budget = 0 表示内存的八分之一（16MB 到 64MB），max_client_write_buffer 和 max_mqueue_bytes 最多为 512KB 和 2MB。吞吐量较低。',
  'With engine = aedes: Redis server through which several gateways form one broker.':
    'engine = aedes 时：多个网关通过此 Redis 服务器组成一个代理。',
};
