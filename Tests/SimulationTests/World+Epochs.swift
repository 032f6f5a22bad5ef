import ReelClient
import ReelCore

@testable import ReelLog

// An operator who ends the epoch, and is sometimes interrupted.
extension World {
    func endEpoch() {
        guard !store.isChanging, store.logs.count < 4 else { return }
        let next = store.make(Epoch(pick(1...1 << 40).magnitude), partitions: Int(pick(1...3)))
        trace("operator", "ends \(log.epoch), \(next.epoch) with \(next.partitions.count) partitions follows")
        // An interrupted earlier run would have left this barrier.
        let barrier = LogAppend(key: Array(StreamName.barrierKey.utf8), value: Barrier.end(next.epoch).value)
        _ = log.append([barrier], to: 0)
        goOnEnding()
    }

    private func goOnEnding() {
        var steps = pick(0...30)
        let isInterrupted = isWorking && chance(70)
        let nodes = snapshotNodes.filter { $0.log === log }
        let archive = nodes.max { $0.committed[0].next < $1.committed[0].next }.map { node in
            SimulatedArchive(log: node.log, folds: node.committed)
        }
        let change = EpochChange(store, archive: archive) { _ in
            steps -= 1
            if isInterrupted, steps < 0 { throw LogError(.logUnavailable, "the operator was interrupted") }
        }
        do {
            let report = try change.run()
            trace("operator", "has made \(report.new.epoch) the current log")
            for loss in report.losses { broken("the new epoch lacks something of \(loss.partition): \(loss.reason)") }
        } catch let error as LogError {
            trace("operator", "\(error)")
            time.at(time.nowMs + pick(100...3_000), lane) { [self] in goOnEnding() }
        } catch {
            broken("the operator found \(error)")
        }
    }

    /// Restarts a gateway that has found a newer current log. The gateway first sends its clients away.
    func goOver(_ gateway: SimulatedGateway) {
        trace(gateway.process.name, "goes over to \(log.epoch)")
        gateway.drain(withinMs: 300)
        let name = gateway.process.name
        time.at(time.nowMs + pick(300...2_000), lane) { [self] in end(gateway, name) }
    }
}
