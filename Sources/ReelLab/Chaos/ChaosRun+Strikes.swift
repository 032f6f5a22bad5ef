import Glibc

extension ChaosRun {
    /// Returns the fault with a target that it would affect; nil if there is none, or if the target is broken already.
    /// A fault of the network needs a path with connections. It is moved to the path with the most connections if the
    /// wanted one has none.
    func placed(_ fault: ChaosFault, beside others: [ChaosFault]) -> ChaosFault? {
        guard fault.kind.isOfNetwork else {
            return others.contains {
                !$0.kind.isOfNetwork && ($0.target == fault.target || $0.hitsBroker && fault.hitsBroker)
            }
                ? nil : fault
        }
        let taken = others.filter(\.kind.isOfNetwork).map(\.target)
        let free = ways.filter { way in
            way.target.group == fault.target.group && !taken.contains(way.target) && way.proxy.connections > 0
        }
        if free.contains(where: { $0.target == fault.target }) { return fault }
        guard let most = free.max(by: { $0.proxy.connections < $1.proxy.connections }) else { return nil }
        var moved = fault
        moved.target = most.target
        return moved
    }

    /// Applies the fault. Returns the number of reconnects of clients before it. Throws if the process had ended
    /// already.
    func strike(_ fault: ChaosFault) async throws -> Int {
        let before = try await load.statistics().reconnects
        if fault.kind.isOfNetwork {
            proxy(fault.target)?.strike(fault.ofProxy)
            return before
        }
        if let state = state(of: fault.target) {
            throw ChildProcess.Failure(description: "\(fault.target) ended unexpectedly: \(state)")
        }
        if case .broker(let number) = fault.target {
            switch fault.kind {
            case .hang: brokers?.pause(number)
            default: brokers?.kill(number)
            }
            return before
        }
        guard let node = node(fault.target) else { return before }
        switch fault.kind {
        case .hang: node.process.pause()
        case .stop:
            node.process.signal(SIGTERM)
            node.process.wait(timeoutMs: 15_000)
        default: node.process.killNow()
        }
        return before
    }

    /// Undoes the fault. Returns the evidence that it took effect; nil if there is none.
    func undo(_ fault: ChaosFault, reconnectsBefore: Int) async throws -> String? {
        let proof: String?
        if fault.kind.isOfNetwork {
            let shows = hasShown(fault)
            let effect = proxy(fault.target)?.heal() ?? FaultProxy.Effect()
            proof = shows ? "\(effect.connections) connections, \(effect.bytes) bytes" : nil
        } else {
            proof = state(of: fault.target) == fault.kind.state ? fault.kind.state : nil
            if case .broker(let number) = fault.target {
                brokers?.resume(number)
                try brokers?.launch(number)
            } else if let node = node(fault.target) {
                if fault.kind == .hang { node.process.resume() } else { try node.launch() }
            }
        }
        let lost = try await load.statistics().reconnects - reconnectsBefore
        return proof.map { lost > 0 ? "\($0), \(lost) clients went elsewhere" : $0 }
    }

    /// Returns true if the target works again. A node that could not reach its log has ended. It is started again, as
    /// its operator would do.
    func isBack(_ fault: ChaosFault) throws -> Bool {
        switch (fault.kind, fault.target) {
        case (.kill, .broker(let number)): brokers?.isReady(number) ?? true
        case (.kill, _), (.stop, _): try node(fault.target)?.hasComeBack() ?? true
        default: true
        }
    }

    /// Returns true if a fault of the network has affected connections, and bytes if the fault is about bytes.
    func hasShown(_ fault: ChaosFault) -> Bool {
        guard fault.kind.isOfNetwork else { return true }
        guard let effect = proxy(fault.target)?.effect else { return false }
        return effect.connections > 0 && (effect.bytes > 0 || fault.kind == .reset)
    }

    /// Returns how the process ended, or that it is stopped; nil: neither.
    private func state(of target: ChaosFault.Target) -> String? {
        if case .broker(let number) = target { return brokers?.process(number)?.state }
        return node(target)?.process.state
    }

    private func node(_ target: ChaosFault.Target) -> LocalNode? {
        switch target {
        case .gateway(let index): cluster.gateways[index]
        case .snapshot(let index): cluster.snapshots[index]
        case .broker: nil
        }
    }

    private func proxy(_ target: ChaosFault.Target) -> FaultProxy? {
        ways.first { $0.target == target }?.proxy
    }
}

extension ChaosFault {
    fileprivate var ofProxy: FaultProxy.Fault {
        switch kind {
        case .blackhole: .blackhole
        case .reset: .reset
        case .halfOpen: .halfOpen
        case .swallow: .swallow
        case .delay, .kill, .hang, .stop: .delay(ms: delayMs)
        }
    }
}

extension ChaosFault.Kind {
    /// The state that the kernel reports for a process with this fault.
    fileprivate var state: String {
        switch self {
        case .hang: "state T"
        case .stop: "exit code 0"
        default: "signal \(SIGKILL)"
        }
    }
}

extension ChildProcess {
    /// The end of the process, or that it is stopped, as the kernel reports it; nil while it runs.
    fileprivate var state: String? {
        if hasEnded() {
            return switch end {
            case .exited(let code): "exit code \(code)"
            case .signalled(let number): "signal \(number)"
            case nil: nil
            }
        }
        let line = String(decoding: Files.bytes(of: "/proc/\(pid)/stat"), as: UTF8.self)
        guard let name = line.lastIndex(of: ")") else { return nil }
        return line[name...].dropFirst(2).first == "T" ? "state T" : nil
    }
}
