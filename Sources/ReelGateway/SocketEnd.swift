/// Why a socket has ended, as it is counted.
enum SocketEnd: String, CaseIterable {
    /// Its client has closed it, or broken off.
    case client
    /// No hello, a late or a wrong one.
    case hello
    /// Too many errors that its client has caused.
    case errors
    /// No token that is valid.
    case token
    /// Its client has as many connections, or has sent as many wrong tokens, as it may.
    case limit
    /// No answer to two pings.
    case silent
    /// What waited for its client was not taken.
    case slow
    /// Too many answers waited for its client.
    case unread
    /// A message was not whole in time.
    case unfinished
    /// The rules of WebSockets were broken.
    case framing
    /// The node ends.
    case leave
}
