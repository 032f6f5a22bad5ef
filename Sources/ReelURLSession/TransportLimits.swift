/// The limits of a transport.
package struct TransportLimits: Sendable {
    /// The time without any byte from the node after which a request fails.
    package var silenceMs = 30_000
    /// The time from the call to the end of a WebSocket's handshake.
    package var openMs: Int64 = 10_000
    /// The time from a read that fails to the end of the connection. The node's close code arrives meanwhile.
    package var closeMs: Int64 = 1_000
    /// The longest message that is accepted from a node, in bytes.
    package var messageBytes = 16 << 20
    /// The most bytes that wait to be sent to a node. With more, the connection ends.
    package var unsentBytes = 64 << 20
    /// The most pings without an answer. Further pings are not sent.
    package var pings = 64

    /// Creates the limits of a transport for apps.
    package init() {}
}
