// The descriptions of configuration keys in Chinese, by the English ones: listeners, limits, users, persistence, topics
// and quotas. Data, part of chinesekeys.ts. A test finds what is missing.

export const BROKER_KEYS: Readonly<Record<string, string>> = {
  'Address and port to listen on; * or [::] = IPv4 and IPv6, port 0 = any free port.':
    '监听的地址和端口；* 或 [::] = IPv4 和 IPv6，端口 0 = 任意空闲端口。',
  'With an IPv6 address such as [::]: accept no IPv4 connections.': '使用 [::] 等 IPv6 地址时：不接受 IPv4 连接。',
  'Whether the listener is opened.': '是否打开该监听器。',
  'Largest number of connections on this listener; further ones are closed. 0 = no limit.':
    '该监听器的最大连接数；超出的连接会被关闭。0 = 不限。',
  'Time allowed for TLS, WebSocket handshake and CONNECT together.': 'TLS、WebSocket 握手和 CONNECT 合计允许的时间。',
  'Highest QoS of publishes and subscriptions on this listener; mqtt.max_qos also applies.':
    '该监听器上发布和订阅的最高 QoS；mqtt.max_qos 同样适用。',
  'Accept clients without a client id and assign one.': '接受没有客户端 ID 的客户端并为其分配一个。',
  'Prefix of assigned client ids.': '所分配的客户端 ID 的前缀。',
  'Use the username as client id and ignore the one sent. Clients without a username are refused.':
    '用用户名作为客户端 ID，忽略客户端发送的 ID。没有用户名的客户端会被拒绝。',
  'Expect a PROXY protocol header (version 1 or 2) on every connection.':
    '每个连接都应以 PROXY 协议头（版本 1 或 2）开始。',
  'Replaces auth.allow_anonymous on this listener.': '在该监听器上代替 auth.allow_anonymous。',
  'Replaces auth.password_file and auth.password on this listener.':
    '在该监听器上代替 auth.password_file 和 auth.password。',
  'Replaces auth.acl_file and auth.acl on this listener.': '在该监听器上代替 auth.acl_file 和 auth.acl。',
  'Placed before every topic and filter of clients on this listener and removed from what they receive, so they see only topics below it; rights are judged with it. %c = client id, %u = username.':
    '加在客户端的每个主题和过滤器之前，并从其收到的主题中去掉，因此客户端只能看到其下的主题；权限按包含它的主题判断。%c = 客户端 ID，%u = 用户名。',
  'Addresses and networks that may connect with that header; other connections are closed before anything is read. Empty = any.':
    '允许带该协议头连接的地址和网络；其他连接在读取之前就被关闭。空 = 任意。',
  'Client certificate in the PROXY header (version 2): required = connections whose header does not tell of a verified one are closed; username = required, its common name is the username, and passwords are not checked.':
    'PROXY 协议头（版本 2）中的客户端证书：required = 协议头未说明证书已验证的连接会被关闭；username = 同 required，且证书的通用名作为用户名，不检查密码。',
  'Private key, PEM.': '私钥，PEM。',
  'Certificate with its chain, PEM.': '证书及其证书链，PEM。',
  'Certificate authorities trusted for client certificates, PEM: a file, or a folder prepared with `openssl rehash`.':
    '用于验证客户端证书的受信任 CA，PEM：文件，或用 `openssl rehash` 准备的文件夹。',
  'Lists of revoked certificates, PEM; the authority that issued a client certificate needs one that is in date.':
    '吊销证书列表，PEM；签发客户端证书的机构必须有一份在有效期内的列表。',
  'Password of the private key.': '私钥的密码。',
  'Request a client certificate and verify it against cacertfile.': '要求客户端证书，并用 cacertfile 验证。',
  'With verify_peer: refuse clients that send no certificate.': '与 verify_peer 一起使用：拒绝没有发送证书的客户端。',
  'ALPN protocol names to offer; empty = no ALPN.': '提供的 ALPN 协议名；空 = 不使用 ALPN。',
  'Lowest TLS version accepted.': '接受的最低 TLS 版本。',
  'Cipher suites in OpenSSL notation, including those of TLS 1.3. Absent = for servers, suites with forward secrecy and authenticated encryption (no RSA key exchange, no CBC); for clients, the defaults of Node.js.':
    'OpenSSL 写法的加密套件，包括 TLS 1.3 的套件。未设置 = 服务器使用具有前向保密和认证加密的套件（无 RSA 密钥交换，无 CBC）；客户端使用 Node.js 的默认值。',
  'Server name requested by clients (SNI); "*.example.org" matches exactly one level.':
    '客户端请求的服务器名（SNI）；"*.example.org" 恰好匹配一级。',
  'Pre-shared keys instead of certificates: lines of identity:key, the key in hexadecimal. With use_identity_as_username the identity is the username.':
    '用预共享密钥代替证书：每行 identity:key，密钥为十六进制。使用 use_identity_as_username 时，identity 即用户名。',
  'With psk_file: hint sent to clients in TLS 1.2.': '与 psk_file 一起使用：在 TLS 1.2 中发送给客户端的提示。',
  'Use the common name of the verified client certificate as username; passwords are not checked.':
    '用已验证客户端证书的通用名作为用户名；不检查密码。',
  'Use the whole subject of the verified client certificate as username, as in "CN=sensor-1,O=Plant".':
    '用已验证客户端证书的完整主体作为用户名，例如 "CN=sensor-1,O=Plant"。',
  'Address, port and path to listen on; * or [::] = IPv4 and IPv6.':
    '监听的地址、端口和路径；* 或 [::] = IPv4 和 IPv6。',
  'Path of the WebSocket request; replaces the path in bind. any = every path. With neither, /mqtt and / are accepted.':
    'WebSocket 请求的路径；代替 bind 中的路径。any = 任意路径。两者都没有时接受 /mqtt 和 /。',
  'Origins of web pages that may connect. Empty = the same host, any port; "*" = any origin; a bare host = http and https on any port. Non-browser clients send no Origin header and are not checked.':
    '允许连接的网页来源（Origin）。空 = 同一主机的任意端口；"*" = 任意来源；只写主机名 = http 和 https 的任意端口。非浏览器客户端不发送 Origin 头，不受检查。',
  'Path of the socket; required.': '套接字的路径；必填。',
  'Permissions of the socket, octal.': '套接字的权限，八进制。',
  'Group of the socket, a name or number.': '套接字的组，名称或编号。',
  'Largest MQTT packet accepted from a client. 0 = the limit of the protocol, 256 MB.':
    '接受客户端的最大 MQTT 报文。0 = 协议上限 256 MB。',
  'Largest payload of a publish. Larger ones are acknowledged (MQTT 5: 0x83) but not delivered. 0 = no limit.':
    '发布的最大消息内容。更大的会被确认（MQTT 5：0x83）但不投递。0 = 不限。',
  'Topic aliases a client may use (MQTT 5). 0 = none.': '客户端可使用的主题别名数（MQTT 5）。0 = 不使用。',
  'Topic aliases used when sending to clients that accept them (MQTT 5). 0 = none; some client libraries do not resolve aliases and deliver an empty topic.':
    '向接受主题别名的客户端发送时使用的别名数（MQTT 5）。0 = 不使用；有些客户端库不解析别名，会给出空主题。',
  'A client that is silent for this multiple of its keep alive is disconnected.':
    '客户端静默时间超过其保活时间的这个倍数时断开。',
  'Longest keep alive; MQTT 5 clients that request a longer one receive this value. 0 = no limit.':
    '最长保活时间；请求更长时间的 MQTT 5 客户端会收到该值。0 = 不限。',
  'Unacknowledged QoS 1 and 2 messages to one client; a lower Receive Maximum of an MQTT 5 client applies instead. 0 = no limit.':
    '发给一个客户端且未确认的 QoS 1 和 2 消息数；MQTT 5 客户端更小的 Receive Maximum 优先。0 = 不限。',
  'Messages waiting for one session. 0 = no limit.': '一个会话中等待的消息数。0 = 不限。',
  'Bytes waiting for one session. 0 = no limit.': '一个会话中等待的字节数。0 = 不限。',
  'Keep QoS 0 messages for sessions that are offline.': '为离线会话保留 QoS 0 消息。',
  'QoS 1 and 2 messages from one client in progress at the same time; sent to MQTT 5 clients as Receive Maximum. 0 = no limit.':
    '一个客户端同时处理中的 QoS 1 和 2 消息数；作为 Receive Maximum 发给 MQTT 5 客户端。0 = 不限。',
  'Longest time the session of an offline client is kept. 0 = no limit.': '离线客户端的会话最长保留时间。0 = 不限。',
  'Highest QoS of publishes and subscriptions.': '发布和订阅的最高 QoS。',
  'Whether retained messages are accepted.': '是否接受保留消息。',
  'Whether subscriptions may contain + and #.': '订阅是否可以包含 + 和 #。',
  'Whether shared subscriptions ($share/...) are accepted.': '是否接受共享订阅（$share/...）。',
  'Largest number of levels of a topic or filter. 0 = no limit.': '主题或过滤器的最大层级数。0 = 不限。',
  'Required prefix of client ids; others are refused. Empty = no prefix.':
    '客户端 ID 必须具有的前缀；其他会被拒绝。空 = 无前缀。',
  'Largest number of sessions, online and offline. A client that needs another one is refused (0x97, before MQTT 5 code 3). 0 = no limit.':
    '在线和离线会话的最大数量。需要新会话的客户端会被拒绝（0x97，MQTT 5 之前为代码 3）。0 = 不限。',
  'Largest number of subscriptions of one session; further ones are refused (0x97, before MQTT 5 0x80). 0 = no limit.':
    '一个会话的最大订阅数；超出的会被拒绝（0x97，MQTT 5 之前为 0x80）。0 = 不限。',
  'Largest number of subscriptions of all sessions together. 0 = no limit.': '所有会话的最大订阅总数。0 = 不限。',
  'Largest number of retained messages. A publish that would add another is refused (0x97); at QoS 0 it is not stored. 0 = no limit.':
    '保留消息的最大数量。会增加数量的发布会被拒绝（0x97）；QoS 0 时不保存。0 = 不限。',
  'Memory of all retained messages together. 0 = no limit.': '所有保留消息占用的内存。0 = 不限。',
  'Largest amount of unsent data for a slow client. Beyond it, QoS 0 is dropped, and QoS 1 and 2 wait in the queue.':
    '慢速客户端未发送数据的最大量。超出后 QoS 0 被丢弃，QoS 1 和 2 在队列中等待。',
  'A client that reads nothing of its pending data for this time is disconnected. 0 = never.':
    '在此时间内完全不读取待收数据的客户端会被断开。0 = 从不。',
  'New connections per second, all listeners together; further ones are closed at once. 0 = no limit.':
    '所有监听器合计每秒的新连接数；超出的立即关闭。0 = 不限。',
  'Largest number of connections not yet accepted by a CONNACK; further ones are closed. 0 = no limit.':
    '尚未收到 CONNACK 的最大连接数；超出的会被关闭。0 = 不限。',
  'Largest number of topic filters of one client that match the same topic. If more match, the newest are removed and the client is disconnected (0x97). 0 = no limit.':
    '一个客户端匹配同一主题的最大过滤器数。超出时移除最新的过滤器并断开客户端（0x97）。0 = 不限。',
  'Queued and unsent bytes for all clients together. Above it, publishers are slowed down; above 1.5 times the budget, queues accept nothing more. 0 = a quarter of the memory of the machine, at least 64MB and at most 1GB, and at most a quarter of the heap limit of Node.js.':
    '所有客户端合计的排队和未发送字节。超出时放慢发布者；超出 1.5 倍时队列不再接受。0 = 机器内存的四分之一，至少 64MB，至多 1GB，且不超过 Node.js 堆上限的四分之一。',
  'Memory for state that outlives connections: sessions with names and wills, subscriptions, retained messages and their indexes. What does not fit is refused (0x97, before MQTT 5 code 3 or 0x80). Subscriptions may use half of it, retained messages half, both together three quarters. 0 = the size of memory_budget.':
    '连接之外的状态所用的内存：会话的名称和遗嘱、订阅、保留消息及其索引。放不下的会被拒绝（0x97，MQTT 5 之前为代码 3 或 0x80）。订阅最多用一半，保留消息最多用一半，两者合计最多四分之三。0 = 与 memory_budget 相同。',
  'How often the values below $SYS are published. 0 = no $SYS.': '发布 $SYS 下各值的间隔。0 = 不发布 $SYS。',
  'Accept clients that send no username. Absent = only while all listeners are on loopback or a Unix socket and no password source is configured.':
    '接受没有用户名的客户端。未设置 = 仅当所有监听器都在环回地址或 Unix 套接字上，且没有配置密码来源时接受。',
  'Users and hashed passwords: a file in the format of mosquitto_passwd.':
    '用户及其密码哈希：mosquitto_passwd 格式的文件。',
  "Permissions: a file in the format of mosquitto's acl_file.": '权限：mosquitto 的 acl_file 格式的文件。',
  'How acl_file applies to SUBSCRIBE. mosquitto: always granted, messages are checked on delivery. truthful: refused if no message could ever be delivered.':
    'acl_file 对 SUBSCRIBE 的作用。mosquitto：总是接受，投递时检查消息。truthful：永远不会有消息可投递时拒绝。',
  'Deliver a retained message only while its publisher still has permission to write the topic.':
    '仅当发布者仍有写该主题的权限时才投递保留消息。',
  'Who may take over a session. user: only the user that created it. client_id: any accepted client with the same client id, as in mosquitto.':
    '谁可以接管会话。user：仅创建它的用户。client_id：任何具有相同客户端 ID 的已接受客户端，与 mosquitto 相同。',
  'Users and their plain-text passwords.': '用户及其明文密码。',
  'Whether the rules are applied.': '规则是否生效。',
  'What clients that match are given.': '匹配的客户端得到的结果。',
  'Actions the rule covers.': '规则所涉及的操作。',
  'Topic filters; \u0024{clientid} and \u0024{username} are replaced by those of the client; after a leading @ the filter is literal. Empty = every topic.':
    '主题过滤器；\u0024{clientid} 和 \u0024{username} 替换为客户端的值；以 @ 开头时按字面理解。空 = 所有主题。',
  'The rule is for this username.': '规则针对此用户名。',
  'The rule is for this client id.': '规则针对此客户端 ID。',
  'The rule is for this address or network.': '规则针对此地址或网络。',
  'The rule is for these addresses or networks.': '规则针对这些地址或网络。',
  'Result when no rule of auth.acl matches.': 'auth.acl 中没有规则匹配时的结果。',
  'Reaction to a denied publish or subscribe: ignore it, or close the connection.':
    '对被拒绝的发布或订阅的处理：忽略，或关闭连接。',
  'Users for SCRAM-SHA-256; one line per user: username:SCRAM-SHA-256$iterations:salt$StoredKey:ServerKey.':
    '用于 SCRAM-SHA-256 的用户；每个用户一行：username:SCRAM-SHA-256$iterations:salt$StoredKey:ServerKey。',
  'Whether these users have a say.': '这些用户是否生效。',
  'Where they are kept, in the format of dynamic-security.json of mosquitto. Default: dynamic-security.json beside the database, or in tidegate.d where nothing is persisted.':
    '保存位置，格式为 mosquitto 的 dynamic-security.json。默认：数据库旁的 dynamic-security.json；未持久化时在 tidegate.d 中。',
  'Whether clients with the right to publish $CONTROL/dynamic-security/v1 may manage users over MQTT.':
    '有权发布 $CONTROL/dynamic-security/v1 的客户端是否可以通过 MQTT 管理用户。',
  'Whether tokens are accepted.': '是否接受令牌。',
  'Shared secret of at least 32 bytes, for HS256, HS384 and HS512. One of this, keyfile, jwks_url and issuer_discovery.':
    '至少 32 字节的共享密钥，用于 HS256、HS384 和 HS512。与 keyfile、jwks_url、issuer_discovery 四选一。',
  'Public key or certificate (PEM), or keys (JWK or JWK set, JSON).':
    '公钥或证书（PEM），或密钥（JWK 或 JWK 集合，JSON）。',
  'Where the JWK set with the public keys is fetched.': '获取公钥 JWK 集合的地址。',
  'Find the JWK set by the document /.well-known/openid-configuration below issuer.':
    '通过 issuer 下的 /.well-known/openid-configuration 文档查找 JWK 集合。',
  'Fetched keys older than this are fetched again at the next login.': '获取的密钥超过此时间后，在下次登录时重新获取。',
  'How long after jwks_refresh the old keys still hold while they cannot be fetched; then tokens are refused.':
    '无法获取密钥时，旧密钥在 jwks_refresh 之后仍有效的时间；之后令牌被拒绝。',
  'For each request for keys.': '每次请求密钥的时间。',
  'Authorities of the server with the keys, PEM; absent = those of the system.':
    '密钥服务器的 CA，PEM；未设置 = 系统的 CA。',
  'Certificate that is shown to the server with the keys, PEM.': '向密钥服务器出示的证书，PEM。',
  'Key of jwks_certfile, PEM.': 'jwks_certfile 的私钥，PEM。',
  'Accepted algorithms; empty = all that suit the key.': '接受的算法；空 = 所有适合该密钥的算法。',
  'Required value of the claim iss.': '声明 iss 必须具有的值。',
  'Value that the claim aud must contain.': '声明 aud 必须包含的值。',
  'Refuse tokens without the claim exp, because they never expire.': '拒绝没有声明 exp 的令牌，因为它们永不过期。',
  'Largest accepted difference between the clocks.': '允许的最大时钟偏差。',
  'The first of these claims found in the token is the username.': '令牌中首先找到的这些声明之一作为用户名。',
  'If the token has this claim, the client id must equal it.': '如果令牌有此声明，客户端 ID 必须与之相同。',
  'If the token has this claim, the client has only the permissions it lists: { "pub": [filters], "sub": [filters], "all": [filters] }.':
    '如果令牌有此声明，客户端只有其中列出的权限：{ "pub": [过滤器], "sub": [过滤器], "all": [过滤器] }。',
  'Failed logins of one user from one address before further logins are refused without a check. 0 = no limit.':
    '一个用户从一个地址登录失败多少次后，后续登录不经检查即被拒绝。0 = 不限。',
  'Failed logins from one address, all users together. 0 = no limit.': '一个地址所有用户合计的登录失败次数。0 = 不限。',
  'Failed logins of one user from all addresses, except those the user has logged in from before. 0 = no limit.':
    '一个用户从所有地址的登录失败次数，该用户以前登录过的地址除外。0 = 不限。',
  'Failures older than this do not count.': '早于此时间的失败不计。',
  'How long logins are refused. Doubles each time, up to max_lock.': '拒绝登录的时间。每次加倍，直到 max_lock。',
  'Longest time logins are refused.': '拒绝登录的最长时间。',
  'Addresses and networks that are never locked; per_user still applies to them.':
    '永不锁定的地址和网络；per_user 对它们仍然适用。',
  'Whether the service is used.': '是否使用该服务。',
  'Time allowed for an answer; without one the client is refused.': '应答允许的时间；没有应答时拒绝客户端。',
  'Time allowed to connect to the service.': '连接该服务允许的时间。',
  'Largest number of concurrent requests.': '同时进行的最大请求数。',
  'How long permission answers are cached. 0 = no cache.': '权限应答的缓存时间。0 = 不缓存。',
  'Address of the service.': '服务的地址。',
  'HTTP method. post sends the parameters in the body, get in the URL.':
    'HTTP 方法。post 在请求体中发送参数，get 在 URL 中发送。',
  'Headers to send.': '要发送的请求头。',
  'Parameters to send: %u username, %c client id, %a address, %P password, %p port, %C and %d subject of the certificate, %t topic, %m mountpoint, %A action, %r protocol.':
    '要发送的参数：%u 用户名，%c 客户端 ID，%a 地址，%P 密码，%p 端口，%C 和 %d 证书主体，%t 主题，%m 挂载点，%A 操作，%r 协议。',
  'Whether persistence is on. Absent = on if path is set.': '是否启用持久化。未设置 = 设置了 path 时启用。',
  'Database file; its folder is created. Setting it turns persistence on.':
    '数据库文件；会创建其所在文件夹。设置后即启用持久化。',
  'When data is synced to disk. ack: before a message is acknowledged. interval: at least once per interval. off: when the operating system decides.':
    '何时将数据同步到磁盘。ack：在确认消息之前。interval：每个 interval 至少一次。off：由操作系统决定。',
  'Interval for sync = interval.': 'sync = interval 时的间隔。',
  'Largest size of the database; beyond it, QoS 1 and 2 publishes to persistent sessions are refused. 0 = no limit.':
    '数据库的最大大小；超出后，拒绝向持久会话的 QoS 1 和 2 发布。0 = 不限。',
  'Reaction to a damaged database. start: set it aside and start with an empty one. stop: do not start.':
    '数据库损坏时的处理。start：将其移到一边并从空数据库开始。stop：不启动。',
  'publish = topics of messages and wills; subscribe = filters of SUBSCRIBE and UNSUBSCRIBE.':
    'publish = 消息和遗嘱的主题；subscribe = SUBSCRIBE 和 UNSUBSCRIBE 的过滤器。',
  'Topic filter of what is rewritten.': '被改写内容的主题过滤器。',
  'New topic: {1} {2} ... = what the wildcards of from stand for, {topic} = the whole topic, %c = client id, %u = username.':
    '新主题：{1} {2} ... = from 中各通配符所代表的内容，{topic} = 整个主题，%c = 客户端 ID，%u = 用户名。',
  'Only for clients on this listener, such as "tcp.second". Empty = on every listener.':
    '仅针对此监听器上的客户端，例如 "tcp.second"。空 = 所有监听器。',
  'Only for this user. Empty = for every user.': '仅针对此用户。空 = 所有用户。',
  'Topic filter; %c = client id, %u = username. A client whose name is empty or holds / + or # goes without.':
    '主题过滤器；%c = 客户端 ID，%u = 用户名。名称为空或含有 /、+、# 的客户端不适用。',
  'Highest QoS.': '最高 QoS。',
  'Leave out messages that the client has published itself.': '不包括该客户端自己发布的消息。',
  'Keep the RETAIN flag of messages.': '保持消息的 RETAIN 标志。',
  '0 = retained messages at each connection, 1 = with a new subscription, 2 = never.':
    '0 = 每次连接时发送保留消息，1 = 新订阅时发送，2 = 从不发送。',
  '$exclusive/<filter> is granted to one client at a time; others get 0x97.':
    '$exclusive/<filter> 同一时间只授予一个客户端；其他客户端得到 0x97。',
  'Publish messages on $delayed/<seconds>/<topic> that many seconds later on <topic>.':
    '将 $delayed/<seconds>/<topic> 上的消息在相应秒数后发布到 <topic>。',
  'Longest delay.': '最长延迟。',
  'Delayed messages at the same time.': '同时存在的延迟消息数。',
  'Payload bytes of all delayed messages.': '所有延迟消息的内容字节数。',
  'Whether the rule is active.': '规则是否启用。',
  'Topics whose messages are checked, from every publisher: clients, wills, bridges, rules, REST.':
    '检查消息的主题，无论由谁发布：客户端、遗嘱、桥接、规则、REST。',
  'What a payload must be. json = one JSON value in UTF-8.': '消息内容必须是什么。json = 一个 UTF-8 编码的 JSON 值。',
  'JSON Schema that the value must satisfy, with content = json.': 'content = json 时，该值必须满足的 JSON Schema。',
  'File with the JSON Schema; read again at a reload.': 'JSON Schema 文件；重新加载时再次读取。',
  'Largest payload that passes. 0 = no limit, only with content = any or utf8.':
    '可通过的最大消息内容。0 = 不限，仅用于 content = any 或 utf8。',
  'What happens to a message that fails. refuse = no effect, MQTT 5 publishers get 0x99; drop = no effect, acknowledged; tag = delivered with a User Property.':
    '对不合格消息的处理。refuse = 不生效，MQTT 5 发布者得到 0x99；drop = 不生效但确认；tag = 附加 User Property 后投递。',
  'Name of the User Property of action = tag; its value is the name of the rule.':
    'action = tag 时 User Property 的名称；其值为规则名称。',
  'Whether the quota is active.': '配额是否启用。',
  'What the limits are for: one client id, all clients of one username (anonymous ones count as one), of one listener, of one IP address (IPv6: its /64 network).':
    '限制的对象：一个客户端 ID、一个用户名的所有客户端（匿名客户端算作一个）、一个监听器的所有客户端，或一个 IP 地址的所有客户端（IPv6：其 /64 网络）。',
  'CONNECT packets per second. 0 = no limit.': '每秒 CONNECT 报文数。0 = 不限。',
  'PUBLISH packets per second. 0 = no limit.': '每秒 PUBLISH 报文数。0 = 不限。',
  'Bytes of PUBLISH packets per second. 0 = no limit.': '每秒 PUBLISH 报文的字节数。0 = 不限。',
  'Seconds whose amount may come at once, for the three limits per second.': '三个每秒限制一次可用的秒数额度。',
  'Subscriptions of their sessions, connected or not; more get 0x97. 0 = no limit.':
    '其会话的订阅数，无论是否连接；超出得到 0x97。0 = 不限。',
  'Sessions, connected or not; more get 0x97. 0 = no limit.': '会话数，无论是否连接；超出得到 0x97。0 = 不限。',
  'Retained messages published by them; more are refused like a full store. 0 = no limit.':
    '由其发布的保留消息数；超出按存储已满处理。0 = 不限。',
  'QoS 1 and 2 messages from them that wait for an acknowledgement of the gateway. 0 = no limit.':
    '由其发送、等待网关确认的 QoS 1 和 2 消息数。0 = 不限。',
  'When publishes, bytes or inflight are exceeded: delay = the client is not read until it is due; drop = QoS 0 is dropped, QoS 1 and 2 are delayed; disconnect = 0x96 (inflight: 0x97). connects: delay = CONNACK waits up to 5 seconds; otherwise and beyond, refused with 0x9F.':
    'publishes、bytes 或 inflight 超出时：delay = 到时才继续读取该客户端；drop = 丢弃 QoS 0，延迟 QoS 1 和 2；disconnect = 0x96（inflight：0x97）。connects：delay = CONNACK 最多等待 5 秒；其他情况及超时以 0x9F 拒绝。',
  'Topic filters of the messages that are recorded. Empty = nothing is recorded.':
    '要录制的消息的主题过滤器。空 = 不录制。',
  'Age at which recorded messages are deleted. 0 = no limit.': '录制的消息保留多久后删除。0 = 不限。',
  'Largest size of the file in use; beyond it, the oldest recorded messages are deleted. 0 = no limit.':
    '文件的最大使用量；超出时删除最旧的录制消息。0 = 不限。',
  'File of the recording. Empty = beside the database of persistence, with -archive in its name.':
    '录制文件。空 = 与 persistence 的数据库放在一起，名称带 -archive。',
};
