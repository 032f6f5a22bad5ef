import Glibc
import Synchronization

/// A TCP proxy in front of one node or broker, which treats its connections badly when it is told to. It has a thread
/// of its own.
public final class FaultProxy: Sendable {
    /// What it does to connections.
    public enum Fault: Sendable, Equatable {
        /// Every piece comes so much later, both ways.
        case delay(ms: Int)
        /// Nothing gets through, and nobody is told; new connections wait too.
        case blackhole
        /// All connections are reset.
        case reset
        /// The node's ends are closed, and clients are not told.
        case halfOpen
        /// The next answer of each connection is lost, and the connection with it.
        case swallow
    }

    /// What the present fault has done so far.
    public struct Effect: Sendable {
        /// Connections that it met.
        public var connections = 0
        /// Bytes that it delayed, held back or lost.
        public var bytes = 0
    }

    private struct Orders {
        var fault: Fault?
        /// Counts the orders, so that the thread sees a new one.
        var number = 0
        var effect = Effect()
        var connections = 0
        var isEnded = false
    }

    /// Where clients knock.
    public let port: Int
    private let orders = Mutex(Orders())
    private let bell: Int32

    /// A proxy of who listens at this port of the loopback, or will.
    public init(to node: UInt16) throws(ChildProcess.Failure) {
        var bells: [Int32] = [0, 0]
        guard pipe(&bells) == 0 else { throw Self.failure("a pipe") }
        for end in bells { ProxyLine.unblock(end) }
        bell = bells[1]
        let (listener, own) = try Self.listen()
        port = Int(own)
        let line = ProxyLine(bell: bells[0], listener: listener, node: node)
        var thread = pthread_t()
        let context = Unmanaged.passRetained(Start(proxy: self, line: line)).toOpaque()
        let started = pthread_create(&thread, nil, Self.main, context)
        guard started == 0 else { throw Self.failure("a thread") }
        pthread_detach(thread)
    }

    deinit {
        close(bell)
    }

    private final class Start {
        let proxy: FaultProxy
        var line: ProxyLine

        init(proxy: FaultProxy, line: ProxyLine) {
            self.proxy = proxy
            self.line = line
        }
    }

    private static let main: @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? = { context in
        guard let context else { return nil }
        let start = Unmanaged<Start>.fromOpaque(context).takeRetainedValue()
        var known = 0
        while true {
            let (fault, number, isEnded) = start.proxy.orders.withLock { ($0.fault, $0.number, $0.isEnded) }
            if isEnded { break }
            if number != known {
                known = number
                start.line.change(to: fault)
            }
            start.line.step()
            let (effect, connections) = (start.line.effect, start.line.connections)
            start.proxy.orders.withLock { orders in
                orders.connections = connections
                if orders.number == known { orders.effect = effect }
            }
        }
        start.line.end()
        return nil
    }

    /// Where clients of a node knock.
    public var url: String { "http://127.0.0.1:\(port)" }

    /// Does this to all connections from now on; what was done before ends.
    public func strike(_ fault: Fault) { change { $0.fault = fault } }

    /// Lets everything through again. Returns what the fault has done.
    @discardableResult
    public func heal() -> Effect {
        let effect = effect
        change { $0.fault = nil }
        return effect
    }

    /// What the present fault has done so far.
    public var effect: Effect { orders.withLock { $0.effect } }

    /// How many connections it has.
    public var connections: Int { orders.withLock { $0.connections } }

    /// Closes everything, and ends the thread.
    public func end() { change { $0.isEnded = true } }

    private func change(_ body: (inout Orders) -> Void) {
        orders.withLock { orders in
            guard !orders.isEnded else { return }
            body(&orders)
            orders.number += 1
            orders.effect = Effect()
            // Before the thread can read of its end, and close the other side.
            var byte: UInt8 = 1
            write(bell, &byte, 1)
        }
    }

    /// A listening socket on a free port of the loopback, and the port.
    static func listen() throws(ChildProcess.Failure) -> (Int32, UInt16) {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | ProxyLine.flags, 0)
        guard listener >= 0 else { throw failure("a socket") }
        var address = ProxyLine.loopback(0)
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isListening = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, size) == 0 && Glibc.listen(listener, 1_024) == 0
                    && getsockname(listener, $0, &size) == 0
            }
        }
        guard isListening else {
            close(listener)
            throw failure("a listening socket")
        }
        return (listener, UInt16(bigEndian: address.sin_port))
    }

    private static func failure(_ what: String) -> ChildProcess.Failure {
        ChildProcess.Failure(description: "a proxy cannot have \(what): \(String(cString: strerror(errno)))")
    }
}
