import Glibc

extension ChaosRun {
    /// The fault, on a way that clients have taken: the one that was wanted, or that of most of them; nil: where it
    /// could be another one lasts.
    func placed(_ fault: ChaosFault, beside others: [ChaosFault]) -> ChaosFault? {
        guard fault.kind.isOfNetwork else {
            return others.contains { !$0.kind.isOfNetwork && $0.target == fault.target } ? nil : fault
        }
        let taken = others.filter(\.kind.isOfNetwork).map(\.target)
        let free = proxies.indices.filter { !taken.contains(.gateway($0)) && proxies[$0].connections > 0 }
        if free.contains(where: { fault.target == .gateway($0) }) { return fault }
        guard let most = free.max(by: { proxies[$0].connections < proxies[$1].connections }) else { return nil }
        var moved = fault
        moved.target = .gateway(most)
        return moved
    }

    /// Does it. Returns how often clients had gone elsewhere before. Throws if the process had ended by itself.
    func strike(_ fault: ChaosFault) async throws -> Int {
        let before = try await load.statistics().reconnects
        if fault.kind.isOfNetwork {
            proxy(fault)?.strike(fault.ofProxy)
            return before
        }
        if let state = state(of: fault.target) {
            throw ChildProcess.Failure(description: "\(fault.target) ended, and nobody had asked for it: \(state)")
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

    /// Undoes it. Returns how it showed that it took effect; nil: it did not show.
    func undo(_ fault: ChaosFault, reconnectsBefore: Int) async throws -> String? {
        let proof: String?
        switch fault.target {
        case .gateway where fault.kind.isOfNetwork:
            let shows = hasShown(fault)
            let effect = proxy(fault)?.heal() ?? FaultProxy.Effect()
            proof = shows ? "\(effect.connections) connections, \(effect.bytes) bytes" : nil
        case .broker(let number):
            proof = state(of: fault.target) == fault.kind.state ? fault.kind.state : nil
            brokers?.resume(number)
            try brokers?.start([number])
        case .gateway, .snapshot:
            guard let node = node(fault.target) else { return nil }
            proof = state(of: fault.target) == fault.kind.state ? fault.kind.state : nil
            if fault.kind == .hang { node.process.resume() } else { try await restart(node) }
        }
        let lost = try await load.statistics().reconnects - reconnectsBefore
        return proof.map { lost > 0 ? "\($0), \(lost) clients went elsewhere" : $0 }
    }

    /// A node that finds its log away ends, or takes its time: its operator would try again.
    private func restart(_ node: LocalNode) async throws {
        for _ in 0..<10 {
            do throws(ChildProcess.Failure) {
                return try node.restart(timeoutMs: 60_000)
            } catch {
                try await Task.sleep(for: .seconds(1))
            }
        }
        try node.restart(timeoutMs: 60_000)
    }

    /// Whether a broken way has met connections, and bytes where it is about those.
    func hasShown(_ fault: ChaosFault) -> Bool {
        guard fault.kind.isOfNetwork else { return true }
        guard let effect = proxy(fault)?.effect else { return false }
        return effect.connections > 0 && (effect.bytes > 0 || fault.kind == .reset)
    }

    /// How the process ended, or that it stands still; nil: neither.
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

    private func proxy(_ fault: ChaosFault) -> FaultProxy? {
        guard case .gateway(let index) = fault.target else { return nil }
        return proxies[index]
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
    /// What the kernel says of a process to which this was done.
    fileprivate var state: String {
        switch self {
        case .hang: "state T"
        case .stop: "exit code 0"
        default: "signal \(SIGKILL)"
        }
    }
}

extension ChildProcess {
    /// How it ended, or that it stands still, as the kernel says; nil while it runs.
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
