import ReelBase
import ReelCore
import TestSupport
import Testing

@testable import ReelClient

@Suite struct ViewTests {
    /// One partition with events of the stream `s`. Other seqs in between belong to other streams.
    struct RandomStream {
        var random: SeededGenerator
        var events: [DeliveredEvent] = []
        var head: Seq = .none
        static let stream = StreamName("s")!

        init(seed: UInt64, length: Int) {
            random = SeededGenerator(seed: seed)
            let sites = (0..<3).map { _ in Site.random(using: &random) }
            var ops = [Op](repeating: 0, count: sites.count)
            for seq in 0..<Seq(length) {
                head = seq
                guard Int.random(in: 0..<4, using: &random) > 0 else { continue }
                let site = Int.random(in: 0..<sites.count, using: &random)
                let id = String(Int.random(in: 0..<8, using: &random))
                let event: SyncEvent =
                    switch Int.random(in: 0..<5, using: &random) {
                    case 0: .delete("m", id: id)
                    case 1, 2: .insert("m", id: id, ["n": .number(Double(seq))])
                    default: .update("m", id: id, ["n": .number(Double(seq)), "t": "x"])
                    }
                let author = EventID(site: sites[site], op: ops[site])
                events.append(DeliveredEvent(seq: seq, value: event.encoded(base: seq - 1, author: author)))
                ops[site] += 1
            }
        }

        /// The frame that proves `from ... to`.
        func frame(_ from: Seq, _ to: Seq) -> ServerFrame.Events {
            let inside = events.filter { $0.seq >= from && $0.seq <= to }
            return ServerFrame.Events(stream: Self.stream, from: from, to: to, events: inside)
        }

        /// Returns the state after all events up to a seq, folded one after the other.
        func fold(to seq: Seq) -> Fold {
            var fold = Fold(stream: Self.stream, partition: 0, epoch: Epoch(1))
            var parsed = ParsedEvent()
            for event in events where event.seq <= seq {
                event.value.withUnsafeBytes { value in
                    guard (try? parsed.parse(value)) != nil else { return }
                    _ = fold.apply(parsed, value, seq: event.seq)
                }
            }
            fold.advance(to: seq)
            return fold
        }

        func emptyView() -> View {
            View(Fold(stream: Self.stream, partition: 0, epoch: Epoch(1), listsChanges: true), partitions: 1)
        }
    }

    @Test("in any order of frames, a view shows no event before all seqs below it are covered")
    func whateverOrderFramesCome() {
        Seeds.run(60) { seed in
            var stream = RandomStream(seed: seed, length: 120)
            var view = stream.emptyView()
            var proven = SeqRanges()
            var progress = View.Progress()
            view.subscribed(after: -1, head: -1)
            for _ in 0..<80 {
                let from = Seq.random(in: 0...stream.head, using: &stream.random)
                let to = min(stream.head, from + Seq.random(in: 0...12, using: &stream.random))
                #expect(view.received(stream.frame(from, to), isPushed: false, owns: { _ in false }, &progress))
                proven.insert(from...to)
                #expect(view.covered == proven, "seed \(seed)")
                #expect(view.seq == proven.contiguous(after: -1), "seed \(seed)")
                #expect(view.gaps == proven.gaps(in: 0...(proven.last ?? 0)), "seed \(seed)")
                var reference = stream.fold(to: view.seq)
                #expect(view.digest() == reference.digest(), "seed \(seed): at \(view.seq)")
            }
            for range in view.covered.gaps(in: 0...stream.head).ranges {
                let frame = stream.frame(range.lowerBound, range.upperBound)
                #expect(view.received(frame, isPushed: false, owns: { _ in false }, &progress))
            }
            var reference = stream.fold(to: stream.head)
            #expect(view.seq == stream.head && view.digest() == reference.digest(), "seed \(seed)")
            #expect(Set(progress.received.map(\.seq)) == Set(stream.events.map(\.seq)), "seed \(seed)")
            #expect(progress.received.count == stream.events.count, "seed \(seed): an event was taken twice")
        }
    }

    @Test("a device shows events above a gap at once, and folds them when the gap is filled") func eventsAboveAGap() {
        let stream = RandomStream(seed: 7, length: 16)
        var view = stream.emptyView()
        var progress = View.Progress()
        _ = view.received(stream.frame(0, 9), isPushed: false, owns: { _ in false }, &progress)
        // The device misses 10…14 offline. Then it subscribes with `now`.
        view.subscribed(after: 14, head: 14)
        progress = View.Progress()
        let live = ServerFrame.Events(
            stream: RandomStream.stream,
            from: 15,
            to: 15,
            events: [
                DeliveredEvent(
                    seq: 15,
                    value: SyncEvent.insert("m", id: "new").encoded(
                        base: 9,
                        author: .init(site: Site(high: 9, low: 9), op: 0)
                    )
                )
            ]
        )
        _ = view.received(live, isPushed: true, owns: { _ in false }, &progress)
        #expect(progress.seen.map(\.seq) == [15])
        #expect(view.gaps == SeqRanges([10...14]))
        #expect(view.seq == 9)
        #expect(view.fold.object(model: "m", id: "new") == nil)
        _ = view.received(stream.frame(10, 14), isPushed: false, owns: { _ in false }, &progress)
        #expect(view.seq == 15)
        #expect(view.gaps.isEmpty)
        #expect(view.fold.object(model: "m", id: "new") != nil)
    }

    @Test("an upto frame proves the seqs after the last pushed seq, and none below") func uptoProvesFromThe() {
        let stream = RandomStream(seed: 8, length: 40)
        var view = stream.emptyView()
        var progress = View.Progress()
        view.subscribed(after: 19, head: 19)
        _ = view.received(stream.frame(20, 24), isPushed: true, owns: { _ in false }, &progress)
        // An answer to a fetch does not change the last pushed seq.
        _ = view.received(stream.frame(30, 34), isPushed: false, owns: { _ in false }, &progress)
        view.upto(29, owns: { _ in false }, &progress)
        #expect(view.covered == SeqRanges([20...34]))
        #expect(view.seq == -1)
        view.unsubscribed()
        view.upto(50, owns: { _ in false }, &progress)
        #expect(view.covered == SeqRanges([20...34]), "no subscription, no proof")
    }

    @Test("a snapshot covers all seqs below it, and the events above it stay") func aSnapshotFillsAll() throws {
        let stream = RandomStream(seed: 9, length: 60)
        var view = stream.emptyView()
        var progress = View.Progress()
        _ = view.received(stream.frame(30, 45), isPushed: false, owns: { _ in false }, &progress)
        #expect(view.install(stream.fold(to: 35), owns: { _ in false }, &progress))
        #expect(view.seq == 45)
        var reference = stream.fold(to: 45)
        #expect(view.digest() == reference.digest())
        #expect(!view.install(stream.fold(to: 40), owns: { _ in false }, &progress), "it never goes back")
    }

    @Test("a view does not take a contradictory frame") func aFrameThatContradicts() {
        let stream = RandomStream(seed: 10, length: 20)
        var progress = View.Progress()
        let event = stream.events[3]
        let frames = [
            (5, 3, []), (-1, 4, []), (event.seq + 1, event.seq + 5, [event]), (0, event.seq - 1, [event]),
            (0, 19, [event, event]), (0, Seq.max, []),
        ]
        for (from, to, events) in frames {
            var view = stream.emptyView()
            let frame = ServerFrame.Events(stream: RandomStream.stream, from: from, to: to, events: events)
            #expect(!view.received(frame, isPushed: true, owns: { _ in false }, &progress), "\(from)…\(to)")
            #expect(view.covered.isEmpty)
        }
    }

    @Test("a barrier of a later version stops the view before it") func aBarrierOfA() {
        let stream = RandomStream(seed: 11, length: 10)
        var view = stream.emptyView()
        var progress = View.Progress()
        var frame = stream.frame(0, 9)
        frame.to = 12
        frame.events.append(DeliveredEvent(seq: 11, value: Array(#"{"fold":9,"type":"barrier"}"#.utf8)))
        _ = view.received(frame, isPushed: false, owns: { _ in false }, &progress)
        #expect(view.stoppedAt == 11)
        #expect(view.seq == 10)
        #expect(view.covered == SeqRanges([0...10]))
        _ = view.received(stream.frame(13, 20), isPushed: false, owns: { _ in false }, &progress)
        #expect(view.covered == SeqRanges([0...10]))
    }

    @Test("own events return with the content that was sent") func ownEventsComeBack() {
        let site = Site(high: 1, low: 2)
        let event = SyncEvent.insert("m", id: "1", ["a": "x"])
        let sent = event.encoded(base: 4, author: .init(site: site, op: 0))
        let text = String(decoding: sent, as: UTF8.self)
        // The text has the members that a gateway adds.
        let stamped = #"{"at":1795285748235,"base":4,"by":"ann","# + text.dropFirst(#"{"base":4,"#.count)
        var view = RandomStream(seed: 1, length: 1).emptyView()
        var progress = View.Progress()
        let frame = ServerFrame.Events(
            stream: RandomStream.stream,
            from: 0,
            to: 5,
            events: [DeliveredEvent(seq: 5, value: Array(stamped.utf8))]
        )
        _ = view.received(frame, isPushed: true, owns: { $0 == site }, &progress)
        #expect(progress.own.first?.content == sent)
        #expect(progress.own.first?.outcome == .applied)
    }

    @Test("a client limits the events that it keeps above a gap") func boundsEventsAboveGap() {
        var view = RandomStream(seed: 1, length: 1).emptyView()
        var progress = View.Progress()
        let site = Site(high: 1, low: 2)
        for start in stride(from: Seq(10), to: 30_010, by: 1_000) {
            let events = (start..<start + 1_000).map {
                DeliveredEvent(seq: $0, value: SyncEvent.noop.encoded(base: -1, author: .init(site: site, op: $0 - 10)))
            }
            let frame = ServerFrame.Events(
                stream: RandomStream.stream,
                from: start,
                to: start + 999,
                events: events
            )
            #expect(view.received(frame, isPushed: false, owns: { _ in false }, &progress))
        }
        #expect(view.heldCount == View.heldMaxEvents)
        #expect(view.covered == SeqRanges([10...20_009]), "what was not held is not covered, and will be fetched")
        #expect(view.head == 30_009)
    }
}
