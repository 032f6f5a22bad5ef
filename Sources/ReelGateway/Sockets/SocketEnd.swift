/// The reason why a socket has ended, as the metrics count it.
enum SocketEnd: String, CaseIterable {
    /// The client has closed the connection or broken it off.
    case client
    /// There was no `hello`, or a late or wrong one.
    case hello
    /// The client has caused too many errors.
    case errors
    /// There was no valid token.
    case token
    /// The client has reached its limit of connections or of wrong tokens.
    case limit
    /// Two pings were not answered.
    case silent
    /// The client has not read the bytes that waited for it.
    case slow
    /// Too many unread answers waited for the client.
    case unread
    /// A message was not complete in time.
    case unfinished
    /// The WebSocket protocol was violated.
    case framing
    /// The node ends.
    case leave
}
