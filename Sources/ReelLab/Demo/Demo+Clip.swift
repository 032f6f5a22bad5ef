import Glibc
import ReelClient
import ReelCore

extension Demo {
    /// Lets a device miss a range of events. It shows new events at once, computes its gap by subtraction, and fetches
    /// the gap from the other gateway.
    func missedRange(_ ann: DemoDevice) async throws {
        screen.chapter("Eve misses a range")
        let clipOfAnn = try await ann.client.open(clip)
        var eve = try await device("eve", at: cluster.a, gaps: .peers)
        var clipOfEve = try await eve.client.open(clip, from: .beginning)
        try await publish(0...9, on: clipOfAnn)
        try await clipOfEve.waitUntil(seq: 9)
        screen.say("eve holds \(await clipOfEve.coverage()), then she is offline")
        await eve.client.close()
        devices.removeLast()
        try await publish(10...14, on: clipOfAnn)

        let (here, there) = (cluster.a, cluster.b)
        eve = try await device("eve", at: here, gaps: .peers)
        // The other gateway is stopped for a moment, so that the demo can show what eve has before it answers.
        there.process.pause()
        defer { there.process.resume() }
        clipOfEve = try await eve.client.open(clip, from: .latest)
        let changes = await clipOfEve.changes()
        try await DemoWait.until("eve is live") { await clipOfEve.gaps().contains(14) }
        let (held, missing, reached) = (await clipOfEve.coverage(), await clipOfEve.gaps(), clipOfEve.status.seq)
        // A gateway that is stopped while it writes to the log blocks all other writers.
        let process = there.process.pid
        let release = Task {
            try await Task.sleep(for: .seconds(5))
            kill(process, SIGCONT)
        }
        defer { release.cancel() }
        try await clipOfAnn.publish(.insert("frame", id: "15", ["number": 15]))
        for await batch in changes where batch.seq >= 15 || batch.seen.contains(where: { $0.seq == 15 }) { break }
        screen.say("eve is back at \(here.name), live from now on: 15 is on her screen at once")
        screen.say("[0…15] − \(held) − 15 = \(missing): she asks \(there.name) for it")
        screen.check(missing == SeqRanges([10...14]), "she knows exactly what she misses")
        screen.check(reached == 9, "and claims no more than she has: her state is that of seq 9")
        there.process.resume()
        try await clipOfEve.waitUntil(seq: 15)
        let statistics = await eve.client.statistics
        screen.say("fetched \(statistics.seqsFetched) seqs; eve holds \(await clipOfEve.coverage())")
        let frames = try clipOfEve.confirmed.objects("frame").count
        screen.check(frames == 16, "all 16 frames are there, each once")
    }

    private func publish(_ numbers: ClosedRange<Int>, on clip: SyncStream) async throws {
        for number in numbers {
            try await clip.publish(.insert("frame", id: "\(number)", ["number": .number(Double(number))])).acked()
        }
    }
}
