import ReelCore

@testable import ReelClient
@testable import ReelLog

// An operator who retires sites, as the command line does.
extension World {
    func retireSites() {
        let streams = Set(devices.flatMap(\.streams)).sorted { $0.description < $1.description }
        let stream = streams[Int(pick(0...Int64(streams.count - 1)))]
        retireSites(of: stream, idleSeqs: chance(50) ? 0 : pick(0...60))
    }

    private func retireSites(of stream: StreamName, idleSeqs: Int64) {
        let last = log.head(stream.partition(of: log.partitions.count))
        guard !store.isChanging, last >= idleSeqs, let handle = try? store.open(log.epoch) else { return }
        do {
            evidence.retired.insert(stream)
            let seq = try SiteRetirement(handle, stream: stream).run(before: last - idleSeqs, foldedTo: last)
            trace("operator", "retires sites of \(stream) before \(last - idleSeqs), at \(seq)")
        } catch {
            trace("operator", "\(error)")
        }
    }

    /// Prepares a rush of events. A device stops getting outcomes, and is then killed. While it is away, all sites of a
    /// stream are retired, and enough events follow that the stream forgets the sites.
    func prepareRush() {
        let device = devices[Int(pick(0...Int64(devices.count - 1)))]
        trace(device.name, "hears nothing more")
        for link in device.links { link.deafen() }
        time.at(time.nowMs + pick(500...4_000), lane) { [self] in
            if isWorking { rush(without: device) }
        }
    }

    private func rush(without device: SimulatedDevice) {
        let stream = device.streams[0]
        kill(device)
        retireSites(of: stream, idleSeqs: 0)
        guard !store.isChanging else { return }
        evidence.forgetful.insert(stream)
        let partition = stream.partition(of: log.partitions.count)
        trace("log", "gets a rush of events of \(stream)")
        let site = Site.random(using: &random)
        let head = log.head(partition)
        let events = (0..<Op(17 * 4_096)).map { op in
            LogAppend(key: stream.key, value: SyncEvent.noop.encoded(base: head, author: .init(site: site, op: op)))
        }
        _ = log.append(events, to: partition)
    }
}
