import ReelCore
import ReelNode
import TestSupport
import Testing

@testable import ReelGateway

/// Tests when the ledger acks an event, and how a refused event affects later ones. It uses neither a clock nor a log.
@Suite struct PublishLedgerTests {
    let todo = StreamName("todo")!
    let a = Site(high: 1, low: 1)
    let b = Site(high: 1, low: 2)

    func offer(
        _ site: Site,
        _ op: Op,
        _ text: String = "x",
        base: Seq? = nil,
        refusal: ReelError? = nil
    ) -> PublishLedger.Offer {
        PublishLedger.Offer(
            site: site,
            op: op,
            value: Batches.value(site, op, text, base: base ?? -1),
            refusal: refusal
        )
    }

    /// A ledger, its answers, and a log that the test plays.
    struct Bench {
        var ledger: PublishLedger
        var nowMs: Int64 = 0
        var consumed: [(site: Site, op: Op, seq: Seq, value: [UInt8])] = []
        let todo = StreamName("todo")!

        init(inFlightBytes: Int = 1 << 20) {
            var settings = GatewaySettings()
            settings.inFlightBytes = inFlightBytes
            ledger = PublishLedger(partitions: 1, settings)
        }

        mutating func publish(
            _ offers: PublishLedger.Offer...,
            from connection: Int = 1,
            isRefused: Bool = false
        ) -> (append: [PendingRecord], answers: [String]) {
            let consumed = consumed
            let (append, settled) = ledger.submit(
                offers,
                to: todo,
                in: 0,
                from: connection,
                ref: nil,
                isRefused: isRefused,
                nowMs: nowMs
            ) { offer in
                consumed.first {
                    $0.site == offer.site && $0.op == offer.op && PublishedContent.contradict($0.value, offer.value)
                }?.seq
            }
            return (append, Self.words(settled))
        }

        mutating func readBack(_ record: PendingRecord, _ site: Site, _ op: Op, at seq: Seq) -> [String] {
            consumed.append((site, op, seq, record.value))
            return Self.words(finishReadBack(record.value, site, op, at: seq))
        }

        mutating func finishReadBack(
            _ value: [UInt8],
            _ site: Site,
            _ op: Op,
            at seq: Seq
        ) -> [PublishLedger.Resolution] {
            let record = value.withUnsafeBytes {
                ledger.readBack(PublisherKey(stream: todo, site: site), op, seq: seq, value: $0)
            }
            return ledger.finish(record.map { [$0] } ?? [])
        }

        /// Reports the records as durable, by default without their seqs.
        mutating func reported(_ pendingRecords: [PendingRecord], at seqs: [Seq]? = nil, head: Seq = 1_000) -> [String]
        {
            do throws(ReelError) {
                let places = seqs ?? pendingRecords.map { _ in .none }
                return Self.words(try ledger.reported(pendingRecords, at: places, head: head, nowMs: nowMs))
            } catch {
                return [error.code.rawValue]
            }
        }

        mutating func giveUpUnseen(_ nowMs: Int64) -> [String] { Self.words(ledger.giveUpUnseen(nowMs: nowMs)) }

        /// Tells the ledger that all records up to `head` were read.
        mutating func read(to head: Seq) -> ErrorCode? {
            do throws(ReelError) { try ledger.read(0, to: head) } catch { return error.code }
            return nil
        }

        func state(nowMs: Int64) -> LogState { LogState(waitedMs: ledger.waitedMs(0, nowMs: nowMs), ledger.settings) }

        mutating func failed(_ pendingRecords: [PendingRecord]) -> [String] {
            Self.words(ledger.failed(pendingRecords, ReelError(.logUnavailable, "away", retryMs: 1_000), nowMs: nowMs))
        }

        /// Returns `1:op@seq` for an ack to connection 1, and `1:op code retry` for a nack.
        static func words(_ settled: [PublishLedger.Resolution]) -> [String] {
            settled.map { settled in
                switch settled.answer {
                case .acked(let seq): "\(settled.connection):\(settled.op)@\(seq)"
                case .nacked(let error):
                    "\(settled.connection):\(settled.op) \(error.code.rawValue)\(error.retryMs.map { " \($0)" } ?? "")"
                }
            }
        }
    }

    @Test("an ack needs the record read back and the report") func anAckNeedsThe() {
        var bench = Bench()
        let (pendingRecords, none) = bench.publish(offer(a, 0), offer(a, 1))
        #expect(none.isEmpty && pendingRecords.count == 2)
        #expect(bench.readBack(pendingRecords[0], a, 0, at: 7).isEmpty, "read back, not reported")
        #expect(bench.reported(pendingRecords) == ["1:0@7"], "op 1 is reported, not read back")
        #expect(bench.readBack(pendingRecords[1], a, 1, at: 8) == ["1:1@8"])
        #expect(bench.ledger.count == 0 && bench.ledger.byteCount == 0)
    }

    @Test("acks come in the order of the ops") func acksComeInThe() {
        var bench = Bench()
        let (pendingRecords, _) = bench.publish(offer(a, 0), offer(a, 1), offer(b, 0))
        for (index, record) in pendingRecords.enumerated() {
            _ = bench.readBack(record, index == 2 ? b : a, index == 1 ? 1 : 0, at: Seq(index))
        }
        #expect(bench.reported([pendingRecords[1]]).isEmpty, "op 1 waits for op 0")
        #expect(bench.reported([pendingRecords[2]]) == ["1:0@2"], "another site waits for nobody")
        #expect(bench.reported([pendingRecords[0]]) == ["1:0@0", "1:1@1"])
    }

    @Test("a report without a place is a report") func aReportWithoutAPlace() {
        var bench = Bench()
        let (pendingRecords, _) = bench.publish(offer(a, 0), offer(a, 1))
        #expect(bench.readBack(pendingRecords[0], a, 0, at: 7).isEmpty)
        #expect(bench.reported(pendingRecords, at: [.none, .none]) == ["1:0@7"])
        #expect(bench.readBack(pendingRecords[1], a, 1, at: 8) == ["1:1@8"])
    }

    @Test("the ledger nacks a record reported without a seq and not read back in time") func nacksUnseenRecord() {
        var bench = Bench()
        let (pendingRecords, _) = bench.publish(offer(a, 0), offer(a, 1), offer(b, 0), offer(b, 1))
        let patience = bench.ledger.settings.unavailableMs
        // The log reports the record long after the ledger has taken it.
        bench.nowMs += 60_000
        let late = bench.nowMs + patience + 1
        #expect(bench.reported([pendingRecords[0]]).isEmpty)
        #expect(bench.reported([pendingRecords[2]], at: [9], head: 7).isEmpty)
        #expect(bench.giveUpUnseen(late - 1).isEmpty)
        #expect(bench.giveUpUnseen(late) == ["1:0 log_unavailable 0", "1:1 gap 0"], "b: a place, no report")
        #expect(bench.giveUpUnseen(late).isEmpty)
        #expect(bench.readBack(pendingRecords[2], b, 0, at: 9) == ["1:0@9"])
        #expect(bench.reported([pendingRecords[1]]).isEmpty)
        #expect(bench.giveUpUnseen(late).isEmpty, "it was answered")
        #expect(bench.ledger.count == 1, "op 1 of b")
    }

    @Test("a report may name the second copy") func aReportMayName() {
        var bench = Bench()
        let (pendingRecords, _) = bench.publish(offer(a, 0), offer(a, 1))
        _ = bench.readBack(pendingRecords[0], a, 0, at: 7)
        #expect(bench.reported(pendingRecords, at: [9, 10], head: 7) == ["1:0@7"])
        #expect(bench.readBack(pendingRecords[1], a, 1, at: 8) == ["1:1@8"], "it need not wait for the second copies")
        #expect(
            bench.readBack(pendingRecords[0], a, 0, at: 9).isEmpty
                && bench.readBack(pendingRecords[1], a, 1, at: 10).isEmpty
        )
        #expect(bench.read(to: 10) == nil)
    }

    @Test("a report at what had been read before is diverged and acks nothing") func aReportAtWhat() {
        for (seq, isRight) in [(8, true), (6, false), (0, false), (-1, true)] as [(Seq, Bool)] {
            var bench = Bench()
            let (pendingRecords, _) = bench.publish(offer(a, 0), offer(a, 1))
            for record in pendingRecords { record.headWhenHandedOver = 6 }
            _ = bench.readBack(pendingRecords[0], a, 0, at: 7)
            let answers = bench.reported(pendingRecords, at: [7, seq], head: 7)
            #expect(answers == (isRight ? ["1:0@7"] : ["diverged"]), "\(seq)")
        }
    }

    @Test("the ledger diverges when the log assigns a seq again, even after identical bytes") func divergesOnReusedSeq()
    {
        var bench = Bench()
        let (pendingRecords, _) = bench.publish(offer(a, 0))
        pendingRecords[0].headWhenHandedOver = 8
        _ = bench.readBack(pendingRecords[0], a, 0, at: 7)
        #expect(bench.reported(pendingRecords, at: [8], head: 8) == ["diverged"])
    }

    @Test("the ledger diverges when a record is not at its reported seq") func divergesOnMisplacedRecord() {
        var bench = Bench()
        let (pendingRecords, _) = bench.publish(offer(a, 0))
        #expect(bench.reported(pendingRecords, at: [7], head: 6).isEmpty)
        #expect(bench.read(to: 6) == nil, "it may come yet")
        #expect(bench.read(to: 7) == .diverged, "another record was read there")
        bench = Bench()
        let (late, _) = bench.publish(offer(a, 0))
        #expect(bench.reported(late, at: [7], head: 7) == ["diverged"])
        bench = Bench()
        let (early, _) = bench.publish(offer(a, 0))
        _ = bench.readBack(early[0], a, 0, at: 7)
        #expect(bench.reported(early, at: [6], head: 7) == ["diverged"], "at 6 another one was read")
    }

    @Test("the ledger does not expect an abandoned record at its reported seq") func ignoresAbandonedRecord() {
        var bench = Bench()
        let (pendingRecords, _) = bench.publish(offer(a, 0))
        #expect(bench.reported(pendingRecords, at: [7], head: 6).isEmpty)
        _ = bench.failed(pendingRecords)
        #expect(bench.read(to: 7) == nil, "the log was trimmed before it was read")
        #expect(bench.reported(pendingRecords, at: [3], head: 6).isEmpty)
    }

    @Test("a report that never comes leaves the event unanswered and is seen") func aReportThatNever() {
        var bench = Bench()
        let (pendingRecords, _) = bench.publish(offer(a, 0), offer(a, 1))
        for (index, record) in pendingRecords.enumerated() {
            #expect(bench.readBack(record, a, Op(index), at: Seq(index)).isEmpty)
        }
        #expect(bench.reported([pendingRecords[1]]).isEmpty, "op 1 waits for op 0")
        #expect(bench.state(nowMs: 100_000) == .unavailable)
        #expect(bench.ledger.awaitsAnswer(1))
        #expect(bench.reported([pendingRecords[0]]) == ["1:0@0", "1:1@1"])
        #expect(!bench.ledger.awaitsAnswer(1))
    }

    @Test("an append error after the read-back is a nack") func lateErrorIsNack() {
        var bench = Bench()
        let (pendingRecords, _) = bench.publish(offer(a, 0), offer(a, 1))
        _ = bench.readBack(pendingRecords[0], a, 0, at: 4)
        _ = bench.readBack(pendingRecords[1], a, 1, at: 5)
        #expect(bench.failed([pendingRecords[0]]) == ["1:0 log_unavailable 1000", "1:1 gap 0"])
        #expect(bench.reported([pendingRecords[1]]).isEmpty, "it was answered")
        #expect(bench.publish(offer(a, 2)).append.count == 1, "both are in the log, so nothing is missing")
        #expect(bench.publish(offer(a, 0), offer(a, 1)).append.count == 2, "and both may come again")
    }

    @Test("one partition that is away holds up no other") func onePartitionThatIs() {
        var ledger = PublishLedger(partitions: 2, GatewaySettings())
        func offered(_ op: Op, in partition: Int, nowMs: Int64) -> Bool {
            !ledger.submit(
                [offer(partition == 0 ? a : b, op)],
                to: todo,
                in: partition,
                from: 1,
                ref: nil,
                nowMs: nowMs,
                conflict: { _ in nil }
            ).append.isEmpty
        }
        #expect(offered(0, in: 0, nowMs: 0))
        #expect(!offered(1, in: 0, nowMs: 5_001))
        #expect(offered(0, in: 1, nowMs: 5_001))
        #expect(Backlog(ledger, nowMs: 6_000).waitedMs == 6_000)
        #expect(Backlog(ledger, nowMs: 6_000).events == 2)
    }

    @Test("only the very bytes that were handed over count as read back") func onlyTheVeryBytes() {
        var bench = Bench()
        let (pendingRecords, _) = bench.publish(offer(a, 0, "mine"))
        let other = Batches.value(a, 0, "theirs")
        #expect(bench.finishReadBack(other, a, 0, at: 3).isEmpty)
        #expect(bench.reported(pendingRecords).isEmpty)
        #expect(bench.readBack(pendingRecords[0], a, 0, at: 4) == ["1:0@4"])
    }

    @Test("a publish is taken whole or not at all") func aPublishIsTaken() {
        var bench = Bench()
        let bad = ReelError(.badEvent, "bad")
        let (pendingRecords, answers) = bench.publish(offer(a, 0), offer(a, 1, refusal: bad), offer(b, 0))
        #expect(pendingRecords.isEmpty)
        #expect(answers == ["1:0 gap 0", "1:1 bad_event", "1:0 gap 0"])
        let (none, unnamed) = bench.publish(offer(b, 0), isRefused: true)
        #expect(none.isEmpty && unnamed == ["1:0 gap 0"])
    }

    @Test("after a nack later ops wait until it comes again") func afterANackLater() {
        var bench = Bench()
        let (first, _) = bench.publish(offer(a, 0), offer(a, 1), offer(a, 2))
        #expect(bench.failed(first) == ["1:0 log_unavailable 1000", "1:1 gap 0", "1:2 gap 0"])
        #expect(bench.publish(offer(a, 1)).answers == ["1:1 gap 0"])
        #expect(bench.publish(offer(a, 3), from: 2).append.count == 1, "another connection is not concerned")
        let (again, answers) = bench.publish(offer(a, 0), offer(a, 1))
        #expect(again.count == 2 && answers.isEmpty)
        #expect(bench.publish(offer(a, 2)).append.count == 1)
    }

    @Test("the ledger appends a repeated event again and acks it at its own seq") func appendsRepeatedEvent() {
        var bench = Bench()
        let (first, _) = bench.publish(offer(a, 0))
        let (again, none) = bench.publish(offer(a, 0), from: 2)
        #expect(again.count == 1 && none.isEmpty, "also while the first is on its way: its outcome is not known")
        _ = bench.readBack(first[0], a, 0, at: 5)
        #expect(bench.reported(first + again) == ["1:0@5"])
        #expect(bench.readBack(again[0], a, 0, at: 6) == ["2:0@6"])
        let (third, _) = bench.publish(offer(a, 0), from: 2)
        #expect(third.count == 1)
        bench.ledger.forget(2)
        _ = bench.reported(third)
        #expect(bench.readBack(third[0], a, 0, at: 7).isEmpty && bench.ledger.isIdle)
    }

    @Test("the same op with other content is a conflict once the first was consumed") func theSameOpWith() {
        var bench = Bench()
        let (pendingRecords, _) = bench.publish(offer(a, 0, "first"))
        #expect(bench.publish(offer(a, 0, "second"), from: 2).answers == ["2:0 gap 50"], "not known yet")
        _ = bench.readBack(pendingRecords[0], a, 0, at: 5)
        _ = bench.reported(pendingRecords)
        #expect(bench.publish(offer(a, 0, "second"), from: 2).answers == ["2:0 conflict"])
        #expect(bench.publish(offer(a, 1), from: 2).append.count == 1, "nothing is missing before op 1")
        #expect(bench.publish(offer(b, 0, "one"), offer(b, 0, "two")).answers == ["1:0 gap 0", "1:0 bad_event"])
    }

    @Test("another base is no other content") func anotherBaseIsNo() {
        var bench = Bench()
        let (pendingRecords, _) = bench.publish(offer(a, 0, base: 3))
        #expect(bench.publish(offer(a, 0, base: 4), from: 2).append.count == 1)
        _ = bench.readBack(pendingRecords[0], a, 0, at: 5)
        _ = bench.reported(pendingRecords)
        #expect(bench.publish(offer(a, 0, base: 5), from: 2).append.count == 1)
        #expect(bench.publish(offer(a, 0), from: 2).append.count == 1)
    }

    @Test("events of two authors do not contradict each other") func eventsOfTwoAuthors() {
        let plain = #"{"at":1,"base":3,"op":0}"#
        let others = [
            (#"{"at":2,"base":4,"op":0}"#, false), (#"{"at":2,"base":4,"op":1}"#, true),
            (#"{"at":2,"base":4,"by":"ann","op":1}"#, false),
        ]
        for (other, contradicts) in others {
            #expect(PublishedContent.contradict(Array(plain.utf8), Array(other.utf8)) == contradicts)
        }
        let (ann, bob) = (#"{"at":1,"base":3,"by":"ann","op":0}"#, #"{"at":1,"base":3,"by":"bob","op":1}"#)
        #expect(!PublishedContent.contradict(Array(ann.utf8), Array(bob.utf8)))
    }

    @Test("a nacked op blocks later ops until the log has all earlier ops in order") func nackedOpBlocksGap() {
        var bench = Bench()
        let (pendingRecords, _) = bench.publish(offer(a, 0), offer(a, 1))
        #expect(bench.failed(pendingRecords) == ["1:0 log_unavailable 1000", "1:1 gap 0"])
        _ = bench.readBack(pendingRecords[1], a, 1, at: 6)
        #expect(bench.publish(offer(a, 2)).answers == ["1:2 gap 0"], "another op is not the one that is missing")
        _ = bench.readBack(pendingRecords[0], a, 0, at: 7)
        #expect(bench.publish(offer(a, 2)).answers == ["1:2 gap 0"], "op 1 stands before op 0: a gap")
        #expect(bench.publish(offer(a, 1)).append.count == 1)
        #expect(bench.publish(offer(a, 2)).append.count == 1)
    }

    @Test("nacked ops that the log shows in order block no later op") func orderedOpsBlockNothing() {
        var bench = Bench()
        let (pendingRecords, _) = bench.publish(offer(a, 0), offer(a, 1))
        _ = bench.failed(pendingRecords)
        _ = bench.readBack(pendingRecords[0], a, 0, at: 6)
        _ = bench.readBack(pendingRecords[1], a, 1, at: 7)
        #expect(bench.ledger.isIdle)
        #expect(bench.publish(offer(a, 2)).append.count == 1)
    }

    @Test("a record that was read back before its append failed blocks no later op") func readBackBlocksNothing() {
        var bench = Bench()
        let (pendingRecords, _) = bench.publish(offer(a, 0))
        _ = bench.readBack(pendingRecords[0], a, 0, at: 7)
        #expect(bench.failed(pendingRecords) == ["1:0 log_unavailable 1000"])
        #expect(bench.ledger.isIdle)
        #expect(bench.publish(offer(a, 1)).append.count == 1)
    }

    @Test("a nack holds up later ops for ten seconds at most") func aNackHoldsUp() {
        var bench = Bench()
        let (pendingRecords, _) = bench.publish(offer(a, 0))
        _ = bench.failed(pendingRecords)
        bench.nowMs = 9_999
        #expect(bench.publish(offer(a, 1)).answers == ["1:1 gap 0"])
        bench.nowMs = 10_000
        #expect(bench.publish(offer(a, 1)).append.count == 1)
    }

    @Test("refused events of many sites cost a bounded memory") func refusedEventsOfMany() {
        var bench = Bench()
        let bad = ReelError(.badEvent, "bad")
        let last = UInt64(NackedOps.lanesPerConnection)
        for low in 0...last { _ = bench.publish(offer(Site(high: 2, low: low), 0, refusal: bad)) }
        #expect(bench.publish(offer(Site(high: 2, low: last - 1), 1)).answers == ["1:1 gap 0"])
        #expect(bench.publish(offer(Site(high: 2, low: last), 1)).append.count == 1, "not remembered")
        bench.ledger.forget(1)
        #expect(bench.ledger.count == 1)
    }

    @Test("the ledger forgets nacked ops after their time limit") func forgetsExpiredNacks() {
        var bench = Bench()
        let bad = ReelError(.badEvent, "bad")
        let last = UInt64(NackedOps.lanesPerConnection)
        for low in 0..<last { _ = bench.publish(offer(Site(high: 2, low: low), 0, refusal: bad)) }
        bench.ledger.nacked.forgetExpired(nowMs: 9_999)
        #expect(!bench.ledger.isIdle)
        bench.nowMs = 10_000
        bench.ledger.nacked.forgetExpired(nowMs: 10_000)
        #expect(bench.ledger.isIdle)
        _ = bench.publish(offer(Site(high: 2, low: last), 0, refusal: bad))
        #expect(bench.publish(offer(Site(high: 2, low: last), 1)).answers == ["1:1 gap 0"], "there is room again")
    }

    @Test("the ledger refuses events after five seconds without an answer of the log") func refusesWithoutLog() {
        var bench = Bench()
        let (pendingRecords, _) = bench.publish(offer(a, 0))
        #expect(bench.state(nowMs: 2_000) == .ok)
        #expect(bench.state(nowMs: 2_001) == .degraded)
        bench.nowMs = 5_001
        #expect(bench.publish(offer(b, 0)).answers == ["1:0 log_unavailable 1000"])
        _ = bench.readBack(pendingRecords[0], a, 0, at: 0)
        #expect(bench.reported(pendingRecords) == ["1:0@0"], "what was taken stays unanswered until it is known")
        #expect(bench.state(nowMs: 9_000) == .ok)
    }

    @Test("the ledger bounds the bytes in flight") func boundsBytesInFlight() {
        var bench = Bench(inFlightBytes: 1_000)
        #expect(bench.publish(offer(a, 0)).append.count == 1)
        #expect(bench.publish(offer(a, 1), offer(a, 2)).answers == ["1:1 overloaded 200", "1:2 overloaded 200"])
    }

    @Test("nothing is acked that the log does not hold") func nothingIsAckedThat() {
        let seed = TestSeed.value
        var random = SeededNumbers(seed)
        for _ in 0..<200 {
            var bench = Bench()
            var nextOp: [Site: Op] = [:]
            var waiting: [(record: PendingRecord, site: Site, op: Op)] = []
            var unreported: [PendingRecord] = []
            var log: [Seq: (Site, Op)] = [:]
            var lastAcked: [Site: Op] = [:]
            var seq: Seq = 0
            var failed: Set<String> = []
            func check(_ settled: [PublishLedger.Resolution]) {
                for answer in settled {
                    guard case .acked(let at) = answer.answer else { continue }
                    #expect(log[at]?.0 == answer.site && log[at]?.1 == answer.op, "seed \(seed)")
                    let next = (lastAcked[answer.site] ?? -1) + 1
                    #expect(next <= answer.op, "seed \(seed): an ack goes back")
                    let isThere = (next..<max(next, answer.op)).allSatisfy { op in
                        log.values.contains { $0 == (answer.site, op) }
                    }
                    #expect(isThere, "seed \(seed): none is missing before it")
                    #expect(!failed.contains("\(answer.site) \(answer.op)"), "seed \(seed)")
                    lastAcked[answer.site] = answer.op
                }
            }
            for _ in 0..<60 {
                switch Int.random(in: 0..<4, using: &random) {
                case 0:
                    let site = Bool.random(using: &random) ? a : b
                    let op = nextOp[site] ?? 0
                    nextOp[site] = op + 1
                    let (append, settled) = bench.ledger.submit(
                        [offer(site, op)],
                        to: todo,
                        in: 0,
                        from: 1,
                        ref: nil,
                        nowMs: 0,
                        conflict: { _ in nil }
                    )
                    check(settled)
                    for record in append {
                        waiting.append((record, site, op))
                        unreported.append(record)
                    }
                case 1 where !waiting.isEmpty:
                    let (record, site, op) = waiting.removeFirst()
                    log[seq] = (site, op)
                    check(bench.finishReadBack(record.value, site, op, at: seq))
                    seq += 1
                case 2 where !unreported.isEmpty:
                    let index = Int.random(in: 0..<unreported.count, using: &random)
                    let record = unreported.remove(at: index)
                    let place = log.first { $0.value == (record.lane.site, record.op) }?.key
                    let places = [place ?? .none]
                    check((try? bench.ledger.reported([record], at: places, head: seq - 1, nowMs: 0)) ?? [])
                case 3 where unreported.count > 5:
                    let record = unreported.removeLast()
                    let settled = bench.ledger.failed([record], ReelError(.logUnavailable, "away"), nowMs: 0)
                    for answer in settled { failed.insert("\(answer.site) \(answer.op)") }
                    check(settled)
                default: break
                }
            }
        }
    }
}
