import Synchronization

/// The number of connections of a node, in total and per address, with limits on both. The servers of all loops share
/// it. Any thread may use it.
///
/// An IPv6 address counts by its first 64 bits, which is what one customer of a network has.
public final class ConnectionGate: Sendable {
    /// The reason for which a connection is refused.
    public enum Refusal: String, CaseIterable, Sendable {
        /// The limit on open connections is reached.
        case connections
        /// The limit on open connections from one address is reached.
        case address
        /// The process has reached its memory limit.
        case memory
    }

    private struct State {
        var open = 0
        var byOrigin: [UInt64: Int] = [:]
        var refused: [Refusal: Int] = [:]
        var descriptorShortages = 0
        var slow = 0
        var lacksMemory = false
    }

    /// The maximum number of connections.
    public let limit: Int
    /// The maximum number of connections from one address; 0: connections are not counted by address.
    public let addressLimit: Int
    /// True if connections from this machine are counted by their address.
    private let countsLoopback: Bool
    private let state = Mutex(State())

    /// Creates a gate without connections.
    ///
    /// - Parameters:
    ///   - limit: The maximum number of connections.
    ///   - addressLimit: The maximum number of connections from one address; 0 for no such limit.
    ///   - countsLoopback: True if connections from this machine are counted by their address.
    public init(limit: Int, addressLimit: Int = 0, countsLoopback: Bool = true) {
        self.limit = limit
        self.addressLimit = addressLimit
        self.countsLoopback = countsLoopback
    }

    /// The number of open connections, WebSockets included.
    public var open: Int { state.withLock { $0.open } }

    /// Returns the number of connections that were refused for this reason.
    public func refused(_ refusal: Refusal) -> Int { state.withLock { $0.refused[refusal] ?? 0 } }

    /// True if memory is too short for further connections, and for large messages on open connections.
    public var lacksMemory: Bool {
        get { state.withLock { $0.lacksMemory } }
        set { state.withLock { $0.lacksMemory = newValue } }
    }

    /// The number of bytes of a message that is accepted even if memory is short. Most messages are smaller.
    static let partBytesMax = 16 << 10

    /// True if memory is too short for a message of which `bytes` bytes have arrived and more are to come.
    func lacksMemory(for bytes: Int) -> Bool { bytes > Self.partBytesMax && lacksMemory }

    /// The number of times that no descriptor was left for a waiting connection.
    public var descriptorShortages: Int { state.withLock { $0.descriptorShortages } }

    /// The number of connections that were reset because the peer read too slowly: during a response, or while a
    /// WebSocket closed.
    public var slow: Int { state.withLock { $0.slow } }

    func metSlow() { state.withLock { $0.slow += 1 } }

    func lackedDescriptor() { state.withLock { $0.descriptorShortages += 1 } }

    /// True if connections from this address are counted by it.
    func counts(_ address: SocketAddress) -> Bool { addressLimit > 0 && (countsLoopback || !address.isLoopback) }

    /// Counts a new connection, or returns the reason to refuse it. `origin` is the number of its address
    /// (`SocketAddress.origin`); 0: it is not counted by address.
    func enter(_ origin: UInt64) -> Refusal? {
        state.withLock { state in
            let refusal: Refusal? =
                if state.lacksMemory {
                    .memory
                } else if state.open >= limit {
                    .connections
                } else if origin != 0, state.byOrigin[origin, default: 0] >= addressLimit {
                    .address
                } else {
                    nil
                }
            if let refusal {
                state.refused[refusal, default: 0] += 1
                return refusal
            }
            state.open += 1
            if origin != 0 { state.byOrigin[origin, default: 0] += 1 }
            return nil
        }
    }

    /// Counts an open connection for the address that a proxy has named, or returns the reason to refuse it.
    func name(_ origin: UInt64) -> Refusal? {
        state.withLock { state in
            guard state.byOrigin[origin, default: 0] < addressLimit else {
                state.refused[.address, default: 0] += 1
                return .address
            }
            state.byOrigin[origin, default: 0] += 1
            return nil
        }
    }

    /// Removes a connection from the count. `origin` is the number that it was counted under.
    func leave(_ origin: UInt64) {
        state.withLock { state in
            state.open -= 1
            guard let count = state.byOrigin[origin] else { return }
            state.byOrigin[origin] = count > 1 ? count - 1 : nil
        }
    }

    func says(_ refusal: Refusal) -> String {
        switch refusal {
        case .connections: "found \(limit) open connections, expected fewer"
        case .address: "found \(addressLimit) open connections of this address, expected fewer"
        case .memory: "the node has as much memory as it may have"
        }
    }
}
