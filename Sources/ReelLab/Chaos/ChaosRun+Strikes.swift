import Glibc

extension ChaosRun {
    /// What was so before a fault.
    struct Before {
        var reconnects = 0
        /// How the process ended, or that it stands still; nil: neither.
        var state: String?
    }

    /// The fault, on a way that clients have taken: the one that was wanted, or that of most of them; nil: on each of
    /// those another fault lasts.
    func placed(_ fault: ChaosFault, beside others: [ChaosFault]) -> ChaosFault? {
        guard fault.kind.isOfNetwork else { return fault }
        let taken = others.filter(\.kind.isOfNetwork).map(\.target)
        let free = proxies.indices.filter { !taken.contains(.gateway($0)) && proxies[$0].connections > 0 }
        if free.contains(where: { fault.target == .gateway($0) }) { return fault }
        guard let most = free.max(by: { proxies[$0].connections < proxies[$1].connections }) else { return nil }
        var moved = fault
        moved.target = .gateway(most)
        return moved
    }

    /// Does it.
    func strike(_ fault: ChaosFault) async throws -> Before {
        var before = Before(reconnects: try await load.statistics().reconnects)
        if fault.kind.isOfNetwork {
            proxy(fault)?.strike(fault.ofProxy)
            return before
        }
        if case .broker(let number) = fault.target {
            switch fault.kind {
            case .hang: brokers?.pause(number)
            default: brokers?.kill(number)
            }
            before.state = brokers.flatMap { $0.state(number) }
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
        before.state = node.process.state
        return before
    }

    /// Undoes it. Returns how it showed that it took effect; nil: it did not show.
    func undo(_ fault: ChaosFault, _ before: Before) async throws -> String? {
        let proof: String?
        switch fault.target {
        case .gateway where fault.kind.isOfNetwork:
            let shows = hasShown(fault)
            let effect = proxy(fault)?.heal() ?? FaultProxy.Effect()
            proof = shows ? "\(effect.connections) connections, \(effect.bytes) bytes" : nil
        case .broker(let number):
            let state = brokers.flatMap { $0.state(number) }
            proof = state == before.state ? state : nil
            brokers?.resume(number)
            try brokers?.start([number])
        case .gateway, .snapshot:
            guard let node = node(fault.target) else { return nil }
            let state = node.process.state
            proof = state == before.state ? state : nil
            if fault.kind == .hang { node.process.resume() } else { try await restart(node) }
        }
        let lost = try await load.statistics().reconnects - before.reconnects
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

extension LocalKafka {
    /// How a broker's process does.
    fileprivate func state(_ broker: Int) -> String? { process(broker)?.state }
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
