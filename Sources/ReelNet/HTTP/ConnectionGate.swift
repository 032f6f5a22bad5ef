import Synchronization

/// How many connections a node has: in all, and from each address. The servers of its loops share it.
///
/// An IPv6 address counts by its first 64 bits, which is what one customer of a network has.
public final class ConnectionGate: Sendable {
    /// Why a connection is not taken.
    public enum Refusal: String, CaseIterable, Sendable {
        /// As many are open as there may be.
        case connections
        /// As many of its address are open as there may be.
        case address
        /// The process has as much memory as it may have.
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

    /// Connections at most.
    public let limit: Int
    /// Connections of one address at most; 0: no fewer than in all.
    public let addressLimit: Int
    /// Whether connections from this machine count for their address.
    private let countsLoopback: Bool
    private let state = Mutex(State())

    /// A gate that nobody has passed yet.
    public init(limit: Int, addressLimit: Int = 0, countsLoopback: Bool = true) {
        self.limit = limit
        self.addressLimit = addressLimit
        self.countsLoopback = countsLoopback
    }

    /// Connections that are open, WebSockets included.
    public var open: Int { state.withLock { $0.open } }

    /// How many were not taken for this reason.
    public func refused(_ refusal: Refusal) -> Int { state.withLock { $0.refused[refusal] ?? 0 } }

    /// Whether there is too little memory for more of them, and for large messages of those that are open.
    public var lacksMemory: Bool {
        get { state.withLock { $0.lacksMemory } }
        set { state.withLock { $0.lacksMemory = newValue } }
    }

    /// So much of a message is taken also where there is too little memory: what most are, and what is waited for.
    static let partBytesMax = 16 << 10

    /// Whether there is too little memory for a message of which so many bytes have come and more are to come.
    func lacksMemory(for bytes: Int) -> Bool { bytes > Self.partBytesMax && lacksMemory }

    /// How often there was no descriptor left for a connection that waited.
    public var descriptorShortages: Int { state.withLock { $0.descriptorShortages } }

    /// How many were reset because too little was taken of what waited: while they were answered, or, of WebSockets,
    /// while they closed.
    public var slow: Int { state.withLock { $0.slow } }

    func metSlow() { state.withLock { $0.slow += 1 } }

    func lackedDescriptor() { state.withLock { $0.descriptorShortages += 1 } }

    /// Whether connections of an address are counted.
    func counts(_ address: SocketAddress) -> Bool { addressLimit > 0 && (countsLoopback || !address.isLoopback) }

    /// Counts one in, unless there is a reason not to. `origin`: its address; 0: it is not counted.
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

    /// Counts one of the connections that are in for the address that a proxy has named, if it may be one more.
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

    /// Counts it out.
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
