import EventLogConformance
import ReelCore
import ReelLog
import ReelNode
import TestSupport
import Testing

@testable import ReelGateway

/// Tests the order in which a loop serves many clients that ask at the same time.
@Suite struct FairQueueTests {
    private let stream = StreamName("a")!
    private let site = Site(high: 1, low: 1)

    @Test("sixteen take their turns and then what else there is") func sixteenTakeTheirTurns() {
        var generator = SeededNumbers(1)
        let host = HandLoop()
        let turns = FairQueue(on: host)
        var order: [Int] = []
        for turn in 0..<40 {
            turns.add {
                order.append(turn)
                return .large
            }
        }
        host.bound { order.append(-1) }(())
        while host.step(&generator) {}
        #expect(order == Array(0..<16) + [-1] + Array(16..<40))
    }

    @Test("a queued task without work takes no turn") func skipsIdleTasks() {
        var generator = SeededNumbers(1)
        let host = HandLoop()
        let turns = FairQueue(on: host)
        var order: [Int] = []
        for turn in 0..<1_000 {
            turns.add {
                guard turn.isMultiple(of: 100) else { return .nothing }
                order.append(turn)
                return .large
            }
        }
        host.bound { order.append(-1) }(())
        while host.step(&generator) {}
        #expect(order == (0..<10).map { $0 * 100 } + [-1])
    }

    @Test("the gateway refuses repeated subscriptions of a client and delays no other client")
    func refusesRepeatedSubscriptions() throws {
        var generator = SeededNumbers(1)
        let (host, log) = (HandLoop(), try MemoryLog(partitions: 1))
        let gateway = GatewayLoop(on: host, over: log) { $0.subscriptions = 100 }
        gateway.received(Batches.batch(from: 0, (0..<100).map { .event(stream, site, Op($0), "x") }))
        let clients = (0..<2).map { _ in
            let (client, wire) = (SocketClient(gateway, access: Access(nil)), Wire())
            client.opened(on: wire)
            client.received(text: Array(#"{"t":"hello","client":"test/1"}"#.utf8))
            return (client, wire)
        }
        for (client, count) in zip(clients, [150, 1]) {
            for _ in 0..<count {
                client.0.received(text: Array(#"{"t":"subscribe","stream":"a","after":-1}"#.utf8))
            }
        }
        func refused() -> Int {
            clients[0].1.frames.count {
                guard case .error(let failure) = $0 else { return false }
                return failure.error.code == .limit
            }
        }
        #expect(refused() == 49)
        #expect(host.step(&generator))
        #expect(clients[1].1.proofs.contains("a 0…99"))
        while host.step(&generator) {}
        #expect(clients[0].1.proofs.filter { $0 == "a 0…99" }.count == 1)
        clients[0].0.received(text: Array(#"{"t":"subscribe","stream":"b","after":-1}"#.utf8))
        #expect(refused() == 49)
    }

    @Test("clients that catch up from the ring take turns") func catchUpTakesTurns() throws {
        var generator = SeededNumbers(1)
        let (host, log) = (HandLoop(), try MemoryLog(partitions: 1))
        let gateway = GatewayLoop(on: host, over: log)
        gateway.received(Batches.batch(from: 0, (0..<100).map { .event(stream, site, Op($0), "x") }))
        let wires = (0..<40).map { _ in
            let (client, wire) = (SocketClient(gateway, access: Access(nil)), Wire())
            client.opened(on: wire)
            client.received(text: Array(#"{"t":"hello","client":"test/1"}"#.utf8))
            client.received(text: Array(#"{"t":"subscribe","stream":"a","after":-1}"#.utf8))
            return wire
        }
        func served() -> Int { wires.count { $0.proofs.contains("a 0…99") } }
        var counts: [Int] = []
        while host.step(&generator) { counts.append(served()) }
        #expect(counts.last == 40)
        #expect(zip([0] + counts, counts).allSatisfy { $1 - $0 <= 16 }, "\(counts)")
    }

    @Test("callers that arrive during a request for the log's end share the next request") func sharesEndRequest()
        throws
    {
        var generator = SeededNumbers(1)
        let memory = try MemoryLog(partitions: 1)
        let (host, log) = (HandLoop(), HeldLog(memory))
        let gateway = GatewayLoop(on: host, over: log)
        var answers: [ReelError?] = []
        func wanted(_ seq: Seq) -> ReadRequest {
            ReadRequest(stream: stream, epoch: nil, lowest: seq + 1, highest: seq)
        }
        for _ in 0..<100 { gateway.waits.reach(wanted(0)) { answers.append($0?.error) } }
        // The loop reads this record before the log has answered the request for its end.
        gateway.received(Batches.batch(from: 0, [.event(stream, site, 0, "x")]))
        while host.step(&generator) {}
        #expect(log.boundsAsked == 2, "what was asked before is no answer to who comes later")
        #expect(answers == [ReelError?](repeating: nil, count: 100))
        gateway.waits.reach(wanted(1)) { answers.append($0?.error) }
        while host.step(&generator) {}
        #expect(log.boundsAsked == 3)
        gateway.received(Batches.batch(from: 1, [.event(stream, site, 1, "x")]))
        #expect(answers.count == 101)
    }

    @Test("the gateway nacks reported publishes when the log proves to be another log") func nacksOnDivergence() throws
    {
        let still = try StillGateway()
        let (client, wire) = still.connect()
        let events = (0...1).map { #"{"site":"\#(site)","op":\#($0),"type":"noop"}"# }.joined(separator: ",")
        client.received(text: Array(#"{"t":"publish","stream":"a","events":[\#(events)]}"#.utf8))
        let gateway = still.gateway
        let pendingRecords = gateway.publishing.ledger.inFlight(0)
        try #require(pendingRecords.count == 2)
        gateway.publishing.reported(pendingRecords, 0, .success([0, 1]))
        gateway.received(
            Batches.batch(
                from: 0,
                [.raw(stream, site, 0, pendingRecords[0].value), .event(stream, site, 7, "another")]
            )
        )
        let answers = wire.frames.flatMap { frame -> [String] in
            switch frame {
            case .ack(let ack): ack.acks.map { "ack \($0.op)" }
            case .nack(let nack): ["nack \(nack.op) \(nack.error.code.rawValue)"]
            default: []
            }
        }
        #expect(answers == ["nack 0 diverged", "nack 1 diverged"])
    }
}
