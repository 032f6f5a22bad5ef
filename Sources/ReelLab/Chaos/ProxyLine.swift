import Glibc
import ReelBase

/// The connections of a proxy, on its thread. It passes data between their ends, and applies the faults.
struct ProxyLine {
    /// Bytes on their way, with the time from which they may be sent.
    private struct Way {
        var pieces: [(dueNs: Int64, bytes: ArraySlice<UInt8>)] = []
        var count = 0

        /// The time from which the first of them may be sent.
        var dueNs: Int64? { pieces.first?.dueNs }

        func isDue(_ nowNs: Int64) -> Bool { dueNs.map { $0 <= nowNs } ?? false }
    }

    private struct Pair {
        let client: Int32
        /// The node's end; −1: it is closed, and the client was not told.
        var node: Int32
        var up = Way()
        var down = Way()
        /// True if the next answer is lost, and the connection with it.
        var swallows = false
        /// True if one end has finished. Data that is on its way is still sent.
        var isEnding = false
        var isOver = false
    }

    static let flags = Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
    /// The number of waiting bytes for one end above which nothing more is read from the other.
    private static let waitingMax = 1 << 20

    private let bell: Int32
    private let listener: Int32
    private let node: UInt16
    private var pairs: [Pair] = []
    private var fault: FaultProxy.Fault?
    private var buffer = [UInt8](repeating: 0, count: 64 << 10)
    private(set) var effect = FaultProxy.Effect()
    var connections: Int { pairs.count }

    init(bell: Int32, listener: Int32, node: UInt16) {
        self.bell = bell
        self.listener = listener
        self.node = node
    }

    static func loopback(_ port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
        return address
    }

    /// Makes a descriptor non-blocking, and closes it in child processes.
    static func unblock(_ descriptor: Int32) {
        _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    }

    // MARK: Faults

    mutating func change(to fault: FaultProxy.Fault?) {
        self.fault = fault
        effect = FaultProxy.Effect(connections: pairs.count)
        for index in pairs.indices {
            switch fault {
            case .reset: reset(index)
            case .halfOpen:
                close(pairs[index].node)
                pairs[index].node = -1
                pairs[index].up = Way()
            case .swallow: pairs[index].swallows = true
            case .delay, .blackhole: break
            case nil:
                // A client that was not told gets a reset now, as from a router that works again.
                if pairs[index].node < 0 { reset(index) }
                pairs[index].swallows = false
            }
        }
        sweep()
    }

    /// Marks a connection for closing, so that both ends get a reset and not an orderly end.
    private mutating func reset(_ index: Int) {
        for descriptor in [pairs[index].client, pairs[index].node] where descriptor >= 0 {
            var now = linger(l_onoff: 1, l_linger: 0)
            setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &now, socklen_t(MemoryLayout<linger>.size))
        }
        pairs[index].isOver = true
    }

    private mutating func sweep() {
        for pair in pairs where pair.isOver {
            close(pair.client)
            if pair.node >= 0 { close(pair.node) }
        }
        pairs.removeAll(where: \.isOver)
    }

    mutating func end() {
        for index in pairs.indices { pairs[index].isOver = true }
        sweep()
        close(listener)
        close(bell)
    }

    // MARK: Steps

    /// Waits until something can be done, and does it.
    mutating func step() {
        let isHole = fault == .blackhole
        let nowNs = MonotonicClock.nowNs()
        var polled = [pollfd(fd: bell, events: Int16(POLLIN), revents: 0)]
        polled.append(pollfd(fd: isHole ? -1 : listener, events: Int16(POLLIN), revents: 0))
        for pair in pairs {
            polled.append(isHole ? Self.nothing : watch(pair, pair.client, reads: pair.up, writes: pair.down, nowNs))
            polled.append(isHole ? Self.nothing : watch(pair, pair.node, reads: pair.down, writes: pair.up, nowNs))
        }
        if isHole { effect.bytes = waitingBytes() }
        // Data that is due already waits for its socket, which wakes the poll.
        let dueNs = isHole ? nil : pairs.flatMap { [$0.up, $0.down] }.compactMap(\.dueNs).filter { $0 > nowNs }.min()
        let waitMs = dueNs.map { ($0 - nowNs + 999_999) / 1_000_000 } ?? 1_000
        guard poll(&polled, nfds_t(polled.count), Int32(clamping: min(waitMs, 1_000))) > 0 else { return flush() }
        while read(bell, &buffer, buffer.count) > 0 {}
        for index in pairs.indices {
            if polled[2 + 2 * index].revents & ~Int16(POLLOUT) != 0 { receive(index, isUp: true) }
            if polled[3 + 2 * index].revents & ~Int16(POLLOUT) != 0 { receive(index, isUp: false) }
        }
        if polled[1].revents != 0 { accept() }
        flush()
    }

    private static let nothing = pollfd(fd: -1, events: 0, revents: 0)

    private func watch(_ pair: Pair, _ descriptor: Int32, reads: Way, writes: Way, _ nowNs: Int64) -> pollfd {
        var events: Int16 = 0
        if reads.count < Self.waitingMax, !pair.isEnding { events |= Int16(POLLIN) }
        if writes.isDue(nowNs) { events |= Int16(POLLOUT) }
        return pollfd(fd: events == 0 ? -1 : descriptor, events: events, revents: 0)
    }

    /// Returns the number of bytes that the ends have sent and that were not read.
    private mutating func waitingBytes() -> Int {
        pairs.flatMap { [$0.client, $0.node] }.reduce(0) { sum, descriptor in
            sum + max(0, recv(descriptor, &buffer, buffer.count, Int32(MSG_PEEK)))
        }
    }

    private mutating func accept() {
        while true {
            let client = Glibc.accept(listener, nil, nil)
            guard client >= 0 else { return }
            Self.unblock(client)
            let node = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Self.flags, 0)
            var on: Int32 = 1
            for descriptor in [client, node] {
                setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
            }
            var address = Self.loopback(self.node)
            let result = withUnsafePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    connect(node, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
                }
            }
            pairs.append(Pair(client: client, node: node, isOver: result != 0 && errno != EINPROGRESS))
            switch fault {
            case .swallow:
                pairs[pairs.count - 1].swallows = true
                effect.connections += 1
            case .delay: effect.connections += 1
            // The other faults affect only connections that exist when the fault begins.
            case .blackhole, .reset, .halfOpen, nil: break
            }
        }
    }

    private mutating func receive(_ index: Int, isUp: Bool) {
        let descriptor = isUp ? pairs[index].client : pairs[index].node
        guard descriptor >= 0, !pairs[index].isOver else { return }
        let count = read(descriptor, &buffer, buffer.count)
        guard count > 0 else {
            if count == 0 { pairs[index].isEnding = true }
            if count < 0, errno != EAGAIN, errno != EINTR { pairs[index].isOver = true }
            return
        }
        if isUp, pairs[index].node < 0 {
            effect.bytes += count
            return
        }
        if !isUp, pairs[index].swallows {
            effect.bytes += count
            return reset(index)
        }
        var dueNs = MonotonicClock.nowNs()
        if case .delay(let ms) = fault {
            dueNs += Int64(ms) * 1_000_000
            effect.bytes += count
        }
        let piece = (dueNs, buffer[..<count])
        if isUp {
            pairs[index].up.pieces.append(piece)
            pairs[index].up.count += count
        } else {
            pairs[index].down.pieces.append(piece)
            pairs[index].down.count += count
        }
    }

    private mutating func flush() {
        guard fault != .blackhole else { return }
        let nowNs = MonotonicClock.nowNs()
        for index in pairs.indices where !pairs[index].isOver {
            let (client, node) = (pairs[index].client, pairs[index].node)
            let isWhole =
                Self.flush(&pairs[index].up, to: node, nowNs) && Self.flush(&pairs[index].down, to: client, nowNs)
            let isEmpty = pairs[index].up.pieces.isEmpty && pairs[index].down.pieces.isEmpty
            if !isWhole || pairs[index].isEnding && isEmpty { pairs[index].isOver = true }
        }
        sweep()
    }

    /// Writes the data that is due. Returns false if the end is gone.
    private static func flush(_ way: inout Way, to descriptor: Int32, _ nowNs: Int64) -> Bool {
        while descriptor >= 0, way.isDue(nowNs) {
            let written = way.pieces[0].bytes.withUnsafeBytes {
                send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            guard written > 0 else { return errno == EAGAIN || errno == EINTR || errno == ENOTCONN }
            way.count -= written
            way.pieces[0].bytes.removeFirst(written)
            if way.pieces[0].bytes.isEmpty { way.pieces.removeFirst() }
        }
        return true
    }
}
