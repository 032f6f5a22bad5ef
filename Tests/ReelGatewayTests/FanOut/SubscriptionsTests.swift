import ReelCore
import ReelLog
import ReelNet
import ReelNode
import Synchronization
import TestSupport
import Testing

@testable import ReelGateway

/// Compares the frames that subscribers get with the records of the log.
@Suite struct SubscriptionsTests {
    /// A client that keeps proven ranges, and events by seq, as a real one does.
    final class Client: Subscriber {
        private static let numbers = Atomic(0)
        let number: Int
        var filterBytes = 0
        var ended = 0
        var proven: [StreamName: Seq] = [:]
        var events: [StreamName: [Seq]] = [:]
        var uptos: [Seq] = []
        var frames = 0
        var keepsUp = true

        func subscriptionEnded() { ended += 1 }

        init(number: Int = Client.numbers.add(1, ordering: .relaxed).newValue) { self.number = number }

        @discardableResult func isSent(_ frame: WebSocketFrame) -> Bool {
            do { if keepsUp { try take(frame) } } catch { Issue.record(error) }
            return keepsUp
        }

        func take(_ frame: WebSocketFrame) throws {
            for frame in try Batches.frames(frame) {
                frames += 1
                switch frame.body {
                case .events(let part):
                    #expect(part.from == (proven[part.stream] ?? -1) + 1, "goes on from the last proven seq")
                    #expect(part.to >= part.from)
                    #expect(part.events.allSatisfy { (part.from...part.to).contains($0.seq) })
                    proven[part.stream] = part.to
                    events[part.stream, default: []] += part.events.map(\.seq)
                case .upto(_, let seq):
                    uptos.append(seq)
                    for stream in proven.keys { proven[stream] = max(proven[stream] ?? -1, seq) }
                default: Issue.record("\(frame)")
                }
            }
        }
    }

    /// The listeners of a loop with two partitions, and what they were told.
    struct Listeners {
        var subscriptions: Subscriptions<Client>
        var proofs = HeadProofs<Client>(partitions: 2)

        init(frameLimit: Int = 1 << 20) { subscriptions = Subscriptions(frameLimit: frameLimit) }

        mutating func add(_ client: Client, _ stream: StreamName, after: Seq, _ filter: EventFilter? = nil)
            -> Subscription<Client>
        {
            subscriptions.add(client, stream, partition: 0, after: after, filter: filter)
        }

        mutating func becameLive(_ entry: Subscription<Client>, head: Seq, send: (Client, WebSocketFrame) -> Void) {
            subscriptions.makeLive(entry)
            let all = subscriptions.all(of: entry.client)
            proofs.caughtUp(entry, among: all, head: head, gathers: false, send: send)
        }

        mutating func tick(
            slots: Range<Int> = Subscriptions<Client>.slots,
            partition: Int = 0,
            head: Seq,
            send: (Client, WebSocketFrame) -> Bool = { $0.isSent($1) }
        ) {
            proofs.tell(subscriptions, slots: slots, partition: partition, head: head, send: send)
        }
    }

    @Test("an upto that could not be sent is not proven") func anUptoThatCould() {
        var listeners = Listeners()
        let client = Client()
        becomeLive(&listeners, client, todo, after: -1, head: 3)
        client.keepsUp = false
        listeners.tick(head: 9)
        client.keepsUp = true
        var lagged: [Seq] = []
        deliver(&listeners, Batches.batch(from: 10, [.event(todo, site, 0, "x")]), lagged: &lagged)
        #expect(client.proven[todo] == 10, "the frame begins behind what the client was told")
        client.keepsUp = false
        listeners.tick(head: 12)
        client.keepsUp = true
        listeners.tick(head: 12)
        #expect(client.uptos == [3, 12], "it is said again")
    }

    let todo = StreamName("todo")!
    let note = StreamName("note")!
    let site = Site(high: 1, low: 1)

    func becomeLive(
        _ listeners: inout Listeners,
        _ client: Client,
        _ stream: StreamName,
        after: Seq,
        head: Seq,
        filter: EventFilter? = nil
    ) {
        client.proven[stream] = after
        let entry = listeners.add(client, stream, after: after, filter)
        listeners.becameLive(entry, head: head) { client, frame in
            do { try client.take(frame) } catch { Issue.record(error) }
        }
    }

    func deliver(_ listeners: inout Listeners, _ batch: TailBatch, lagged: inout [Seq]) {
        let late = listeners.subscriptions.deliver(batch) { client, frame in client.isSent(frame) }
        for entry in late {
            lagged.append(entry.proven)
            _ = listeners.subscriptions.remove(entry.client, entry.stream)
        }
    }

    @Test("a subscription that becomes live is proven at once") func aSubscriptionThatBecomes() {
        var listeners = Listeners()
        let client = Client()
        becomeLive(&listeners, client, todo, after: 3, head: 7)
        #expect(client.uptos == [7])
    }

    @Test("while another catches up a frame of the stream proves it") func whileAnotherCatchesUp() {
        var listeners = Listeners()
        let client = Client()
        _ = listeners.add(client, note, after: 1)
        becomeLive(&listeners, client, todo, after: 3, head: 7)
        #expect(client.uptos.isEmpty, "upto would prove what the other stream has not been sent")
        #expect(client.proven[todo] == 7)
        listeners.tick(head: 9)
        #expect(client.uptos.allSatisfy { $0 <= 1 })
    }

    @Test("upto comes only when the head has passed what is proven") func uptoComesOnlyWhen() {
        var listeners = Listeners()
        let client = Client()
        becomeLive(&listeners, client, todo, after: -1, head: -1)
        client.uptos = []
        var lagged: [Seq] = []
        deliver(&listeners, Batches.batch(from: 0, [.event(todo, site, 0, "x")]), lagged: &lagged)
        listeners.tick(head: 0)
        #expect(client.uptos.isEmpty, "the events frame has proven it")
        deliver(&listeners, Batches.batch(from: 1, [.event(note, site, 0, "x")]), lagged: &lagged)
        listeners.tick(head: 1)
        listeners.tick(head: 1)
        #expect(client.uptos == [1])
    }

    @Test("a subscriber receives each state of the log once") func sendsLogStateOnce() {
        var listeners = Listeners()
        let client = Client()
        becomeLive(&listeners, client, todo, after: -1, head: 3)
        var told: [String] = []
        func take(_ client: Client, _ frame: WebSocketFrame) -> Bool {
            told.append(String(decoding: frame.bytes.dropFirst(2), as: UTF8.self))
            return client.isSent(frame)
        }
        for state in [.ok, .degraded, .degraded, .unavailable, .ok] as [LogState] {
            listeners.proofs.log = state
            for partition in 0...1 { listeners.tick(partition: partition, head: 3, send: take) }
        }
        let upto = #"{"t":"upto","partition":0,"seq":3"#
        #expect(told == [upto + #","log":"degraded"}"#, upto + #","log":"unavailable"}"#, upto + "}"])
        listeners.proofs.log = .ended
        told = []
        let entry = listeners.add(Client(), note, after: 3)
        listeners.becameLive(entry, head: 3) { _ = take($0, $1) }
        #expect(told == [upto + #","log":"ended"}"#])
    }

    @Test("a client that did not keep up receives the log's state again") func repeatsLogState() {
        var listeners = Listeners()
        let client = Client()
        becomeLive(&listeners, client, todo, after: -1, head: 3)
        listeners.proofs.log = .degraded
        client.uptos = []
        for keepsUp in [false, true, true] {
            client.keepsUp = keepsUp
            listeners.tick(head: 3)
        }
        #expect(client.uptos == [3], "once it keeps up, and once only")
    }

    @Test("only a client that did not keep up receives the log's state again") func repeatsOnlyForSlow() {
        var listeners = Listeners()
        // There are more clients than slots, so some clients share the slot of the slow one.
        let clients = (0..<10 * Subscriptions<Client>.slots.count).map { _ in Client() }
        for client in clients { becomeLive(&listeners, client, todo, after: -1, head: 3) }
        for client in clients { client.uptos = [] }
        listeners.proofs.log = .degraded
        clients[0].keepsUp = false
        for _ in 0..<3 { listeners.tick(head: 3) }
        #expect(clients.dropFirst().allSatisfy { $0.uptos == [3] } && clients[0].uptos.isEmpty)
        clients[0].keepsUp = true
        for _ in 0..<2 { listeners.tick(head: 3) }
        #expect(clients.allSatisfy { $0.uptos == [3] })
    }

    @Test("each slot has its part of the clients however they are numbered") func eachSlotHasIts() {
        for stride in [1, 2, 3, 31, 32, 64, 101] {
            var listeners = Listeners()
            let clients = (0..<640).map { Client(number: $0 * stride) }
            for client in clients {
                let entry = listeners.add(client, todo, after: -1)
                listeners.becameLive(entry, head: 3) { _, _ in }
            }
            var told = 0
            for slot in Subscriptions<Client>.slots {
                let before = told
                listeners.tick(slots: slot..<slot + 1, head: 4) { _, _ in
                    told += 1
                    return true
                }
                #expect(told - before < 40, "twenty, about")
            }
            #expect(told == clients.count)
        }
    }

    @Test("barriers reach every stream and voids none") func barriersReachEveryStream() {
        var listeners = Listeners()
        let (one, two) = (Client(), Client())
        becomeLive(&listeners, one, todo, after: -1, head: -1)
        becomeLive(&listeners, two, note, after: -1, head: -1)
        var lagged: [Seq] = []
        deliver(
            &listeners,
            Batches.batch(from: 0, [.event(todo, site, 0, "x"), .void, .barrier, .hole]),
            lagged: &lagged
        )
        #expect(one.events[todo] == [0, 2] && one.proven[todo] == 3)
        #expect(two.events[note] == [2] && two.proven[note] == 3)
    }

    @Test("frames are bounded but for one large event") func framesAreBoundedBut() throws {
        var listeners = Listeners(frameLimit: 2_000)
        let client = Client()
        becomeLive(&listeners, client, todo, after: -1, head: -1)
        let sizes = [500, 500, 500, 500, 5_000, 10, 10]
        let records = sizes.enumerated().map { index, size in
            Batches.Record.event(todo, site, Op(index), String(repeating: "x", count: size))
        }
        let batch = Batches.batch(from: 0, records)
        var largest = 0
        let late = listeners.subscriptions.deliver(batch) { client, frame in
            largest = max(largest, frame.bytes.count)
            return client.isSent(frame)
        }
        #expect(late.isEmpty)
        #expect(client.events[todo] == Array(0..<7))
        #expect(client.frames >= 4)
        #expect(largest < 5_500)
    }

    @Test("a client that does not keep up becomes lagged and the other clients continue") func slowSubscriberLags() {
        var listeners = Listeners()
        let (slow, fast) = (Client(), Client())
        becomeLive(&listeners, slow, todo, after: -1, head: -1)
        becomeLive(&listeners, fast, todo, after: -1, head: -1)
        var lagged: [Seq] = []
        deliver(&listeners, Batches.batch(from: 0, [.event(todo, site, 0, "x")]), lagged: &lagged)
        slow.keepsUp = false
        deliver(&listeners, Batches.batch(from: 1, [.event(todo, site, 1, "x")]), lagged: &lagged)
        deliver(&listeners, Batches.batch(from: 2, [.event(todo, site, 2, "x")]), lagged: &lagged)
        #expect(lagged == [0], "once, with what was proven")
        #expect(fast.events[todo] == [0, 1, 2] && slow.events[todo] == [0])
        #expect(listeners.subscriptions.count == 1)
    }

    @Test("nothing is skipped or doubled however they come and go") func nothingIsSkippedOr() {
        let seed = TestSeed.value
        var random = SeededNumbers(seed)
        for _ in 0..<50 {
            var listeners = Listeners(frameLimit: 1_000)
            var ring = Ring(from: 0, byteLimit: 1 << 20)
            let clients = (0..<4).map { _ in Client() }
            var truth: [StreamName: [Seq]] = [todo: [], note: []]
            var ops: Op = 0
            func catchUp(_ entry: Subscription<Client>) {
                guard let chunk = ring.piece(of: entry.stream, from: entry.next, to: ring.head, bytes: 700) else {
                    return
                }
                if case .send(let range) = entry.take(chunk) {
                    try? entry.client.take(range.frame(stream: entry.stream))
                }
                guard entry.next > ring.head else { return }
                listeners.becameLive(entry, head: ring.head) { client, frame in client.isSent(frame) }
            }
            var catching: [Subscription<Client>] = []
            for _ in 0..<100 {
                let stream = Bool.random(using: &random) ? todo : note
                let client = clients[Int.random(in: 0..<4, using: &random)]
                switch Int.random(in: 0..<6, using: &random) {
                case 0:
                    let after = Seq.random(in: -1...ring.head, using: &random)
                    client.proven[stream] = after
                    client.events[stream] = truth[stream]?.filter { $0 <= after }
                    catching.append(listeners.add(client, stream, after: after))
                case 1 where listeners.subscriptions.remove(client, stream): client.proven[stream] = nil
                case 2: listeners.tick(head: ring.head)
                case 3: catching.filter { !$0.isOver && !$0.isLive }.forEach(catchUp)
                default:
                    var records: [Batches.Record] = []
                    for _ in 0..<Int.random(in: 1...4, using: &random) {
                        let seq = ring.head + 1 + Seq(records.count)
                        switch Int.random(in: 0..<6, using: &random) {
                        case 0: records.append(.void)
                        case 1:
                            records.append(.barrier)
                            truth[todo]?.append(seq)
                            truth[note]?.append(seq)
                        case 2: records.append(.hole)
                        default:
                            records.append(.event(stream, site, ops, "x"))
                            truth[stream]?.append(seq)
                            ops += 1
                        }
                    }
                    let batch = Batches.batch(from: ring.head + 1, records)
                    let isTaken = ring.append(batch)
                    #expect(isTaken)
                    var lagged: [Seq] = []
                    deliver(&listeners, batch, lagged: &lagged)
                }
            }
            for client in clients {
                for (stream, proven) in client.proven where listeners.subscriptions.entry(client, stream) != nil {
                    let expected = truth[stream]?.filter { $0 <= proven }
                    #expect(client.events[stream] == expected, "seed \(seed)")
                }
            }
        }
    }
}

@Suite struct RingTests {
    let todo = StreamName("todo")!
    let note = StreamName("note")!
    let site = Site(high: 1, low: 1)

    func ring(_ count: Int, byteLimit: Int = 1 << 20) -> Ring {
        var ring = Ring(from: 0, byteLimit: byteLimit)
        for index in 0..<count {
            _ = ring.append(
                Batches.batch(from: Seq(index), [.event(index % 2 == 0 ? todo : note, site, Op(index), "x")])
            )
        }
        return ring
    }

    @Test("a batch that does not follow is not taken") func aBatchThatDoes() {
        var ring = ring(3)
        let taken = [ring.append(Batches.batch(from: 4, [.void])), ring.append(Batches.batch(from: 2, [.void]))]
        #expect(taken == [false, false] && ring.head == 2)
    }

    @Test("the ring forgets its oldest records and reports them as missing") func forgetsOldestRecords() {
        let ring = ring(100, byteLimit: 10_000)
        #expect(ring.head == 99 && ring.first > 0 && ring.byteCount <= 10_000)
        #expect(ring.item(at: ring.first) != nil && ring.item(at: ring.first - 1) == nil)
        #expect(ring.piece(of: todo, from: ring.first - 1, to: 99, bytes: 1 << 20) == nil)
        let chunk = ring.piece(of: todo, from: ring.first, to: 99, bytes: 1 << 20)
        #expect(chunk?.count == Int((100 - ring.first) / 2))
    }

    @Test("the ring reports a conflict only with an event that the fold has consumed") func conflictNeedsConsumedEvent()
    {
        let seed = TestSeed.value
        var random = SeededNumbers(seed)
        var conflicts = 0
        for _ in 0..<100 {
            var (ring, fold) = (Ring(from: 0, byteLimit: 20_000), Fold(stream: todo, partition: 0, epoch: Epoch(1)))
            var consumed: [Site: [Op: String]] = [:]
            for seq in 0..<Seq(100) {
                let site = Site(high: 1, low: UInt64.random(in: 0...1, using: &random))
                let next = Op(consumed[site]?.count ?? 0)
                let op = Op.random(in: max(0, next - 2)...next + 1, using: &random)
                let text = "\(Int.random(in: 0...1, using: &random))"
                let value = Batches.value(site, op, text)
                if let at = ring.conflict(in: todo)(value, site, op) {
                    conflicts += 1
                    #expect(at < seq && consumed[site]?[op] != nil && consumed[site]?[op] != text, "seed \(seed)")
                }
                var event = ParsedEvent()
                let outcome = value.withUnsafeBytes { bytes in
                    (try? event.parse(bytes)).map { fold.apply(event, bytes, seq: seq) }
                }
                if case .applied = outcome { consumed[site, default: [:]][op] = text }
                if case .rejected = outcome { consumed[site, default: [:]][op] = text }
                _ = ring.append(Batches.batch(from: seq, [.event(todo, site, op, text)]))
            }
        }
        #expect(conflicts > 100)
    }

    @Test("the ring reports no conflict with an event that may be stale") func ignoresStaleEvent() {
        for (seq, isProven) in [(Seq(61_440), false), (61_439, true)] {
            var ring = Ring(from: 0, byteLimit: 64 << 20)
            _ = ring.append(Batches.batch(from: 0, Array(repeating: .void, count: Int(seq))))
            _ = ring.append(Batches.batch(from: seq, [.event(todo, site, 0, "x")]))
            let other = ring.conflict(in: todo)(Batches.value(site, 0, "y"), site, 0)
            #expect(other == (isProven ? seq : nil))
            #expect(ring.conflict(in: todo)(Batches.value(site, 0, "x", base: 7), site, 0) == nil)
        }
    }

    @Test("where the site may have begun before the ring nothing is proven") func whereTheSiteMay() {
        var ring = Ring(from: 1, byteLimit: 1 << 20)
        _ = ring.append(Batches.batch(from: 1, [.event(todo, site, 0, "x")]))
        #expect(ring.conflict(in: todo)(Batches.value(site, 0, "y"), site, 0) == nil)
    }

    @Test("a chunk proves only what it holds") func aChunkProvesOnly() {
        let ring = ring(10)
        let one = ring.piece(of: todo, from: 0, to: 9, bytes: 1)
        #expect(one?.count == 1 && one?.to == 1, "up to before the next event")
        let limited = ring.piece(of: todo, from: 1, to: 9, bytes: 1 << 20, events: 2)
        #expect(limited?.count == 2 && limited?.to == 5)
        #expect(ring.piece(of: todo, from: 0, to: 10, bytes: 1) == nil, "not read yet")
    }

    @Test("the hash of an event tells whether both hold the same") func theHashOfAn() throws {
        let ring = ring(4)
        let hash = Batches.batch(from: 2, [.event(todo, site, 2, "x")]).witness?.hash
        #expect(ring.agrees(stream: todo, seq: 2, hash: try #require(hash)) == true)
        #expect(ring.agrees(stream: todo, seq: 2, hash: 1) == false)
        #expect(ring.agrees(stream: todo, seq: 3, hash: 1) == false, "an event of another stream")
        #expect(ring.agrees(stream: todo, seq: 4, hash: 1) == nil)
    }
}
