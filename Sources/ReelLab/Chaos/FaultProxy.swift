import Glibc
import Synchronization

/// A TCP proxy for one node or broker, which can apply faults to its connections. It has its own thread.
public final class FaultProxy: Sendable {
    /// A fault of the connections.
    public enum Fault: Sendable, Equatable {
        /// All data arrives `ms` milliseconds later, in both directions.
        case delay(ms: Int)
        /// No data gets through, and neither end gets an error. New connections wait too.
        case blackhole
        /// All connections are reset.
        case reset
        /// The node's ends are closed, and clients are not told.
        case halfOpen
        /// The next answer of each connection is lost, and then the connection is reset.
        case swallow
    }

    /// The effect of the present fault up to now.
    public struct Effect: Sendable {
        /// The number of connections that it affected.
        public var connections = 0
        /// The number of bytes that it delayed, held back or lost.
        public var bytes = 0
    }

    private struct Orders {
        var fault: Fault?
        /// The number of orders, so that the thread notices a new one.
        var number = 0
        var effect = Effect()
        var connections = 0
        var isEnded = false
    }

    /// The port for clients.
    public let port: Int
    private let orders = Mutex(Orders())
    private let bell: Int32

    /// Creates a proxy of the server at this port of the loopback. The server may start later.
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

    /// The URL for clients of a node.
    public var url: String { "http://127.0.0.1:\(port)" }

    /// Applies this fault to all connections from now on. It replaces the former fault.
    public func strike(_ fault: Fault) { change { $0.fault = fault } }

    /// Ends the fault. Returns its effect.
    @discardableResult
    public func heal() -> Effect {
        let effect = effect
        change { $0.fault = nil }
        return effect
    }

    /// The effect of the present fault up to now.
    public var effect: Effect { orders.withLock { $0.effect } }

    /// The number of connections.
    public var connections: Int { orders.withLock { $0.connections } }

    /// Closes everything, and ends the thread.
    public func end() { change { $0.isEnded = true } }

    private func change(_ body: (inout Orders) -> Void) {
        orders.withLock { orders in
            guard !orders.isEnded else { return }
            body(&orders)
            orders.number += 1
            orders.effect = Effect()
            // Inside the lock: afterwards the thread could read the order to end, and close the other side of the pipe.
            var byte: UInt8 = 1
            write(bell, &byte, 1)
        }
    }

    /// Returns a listening socket on a free port of the loopback, and the port.
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
