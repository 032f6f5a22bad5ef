import ReelCore
import Testing

@testable import ReelGateway

/// Tests the rules of one connection; the test sets the clock.
@Suite struct SessionTests {
    let settings = GatewaySettings()
    let hello = ClientFrame(.hello(.init(client: "test/1")))
    let other = ClientFrame(.unsubscribe(StreamName("todo")!))
    let bad: FrameError

    init() throws {
        let read = Result { () throws(FrameError) in try ClientFrame(UnsafeRawBufferPointer(start: nil, count: 0)) }
        guard case .failure(let error) = read else { throw CancellationError() }
        bad = error
    }

    func open() -> Session {
        var session = Session(settings, nowMs: 0)
        #expect(session.received(.success(hello)) == .welcome)
        return session
    }

    func closeCode(_ action: Session.Action) -> UInt16? {
        if case .refuseAndClose(_, let code) = action { code } else { nil }
    }

    @Test("hello comes first and once") func helloComesFirstAnd() {
        var early = Session(settings, nowMs: 0)
        #expect(closeCode(early.received(.success(other))) == 1008)
        #expect(early.received(.success(hello)) == .ignore, "it is closing")
        var broken = Session(settings, nowMs: 0)
        #expect(closeCode(broken.received(.failure(bad))) == 1008)
        var twice = open()
        #expect(closeCode(twice.received(.success(hello))) == 1008)
        var proper = open()
        #expect(proper.received(.success(other)) == .handle(other))
    }

    @Test("a late hello closes the connection") func aLateHelloCloses() {
        var session = Session(settings, nowMs: 0)
        #expect(session.tick(nowMs: 9_999) == .nothing)
        guard case .close(_, 1008) = session.tick(nowMs: 10_000) else {
            Issue.record("still open")
            return
        }
        #expect(session.tick(nowMs: 10_001) == .nothing)
    }

    @Test("the hundredth error closes the connection") func theHundredthErrorCloses() {
        var session = open()
        for _ in 1..<100 { #expect(session.received(.failure(bad)) == .refuse(bad.error)) }
        #expect(closeCode(session.refused(bad.error)) == 1008)
    }

    @Test("only errors that the client has caused are counted") func onlyErrorsThatThe() {
        var session = open()
        let others: [ErrorCode] = [
            .logUnavailable, .nodeBehind, .internal, .damaged, .epochChanged, .truncated, .diverged,
            .aheadOfLog,
        ]
        for code in others {
            for _ in 0..<100 {
                let error = ReelError(code, "not its fault")
                #expect(session.refused(error) == .refuse(error))
            }
        }
        #expect(session.errors == 0)
        for code in [ErrorCode.limit, .forbidden, .badRange] {
            _ = session.refused(ReelError(code, "its fault"))
        }
        #expect(session.errors == 3)
    }

    @Test("two pings without a sign of life close the connection") func twoPingsWithoutA() {
        var session = open()
        #expect(session.tick(nowMs: 24_999) == .nothing)
        #expect(session.tick(nowMs: 25_000) == .ping)
        #expect(session.tick(nowMs: 32_999) == .nothing)
        #expect(session.tick(nowMs: 33_000) == .ping)
        session.heard(nowMs: 34_000)
        #expect(session.tick(nowMs: 58_999) == .nothing)
        #expect(session.tick(nowMs: 59_000) == .ping)
        #expect(session.tick(nowMs: 67_000) == .ping)
        guard case .close(_, 1008) = session.tick(nowMs: 75_000) else {
            Issue.record("still open")
            return
        }
    }

    @Test("it leaves at its moment") func itLeavesAtIts() {
        var session = open()
        session.askToLeave(atMs: 500)
        #expect(session.tick(nowMs: 499) == .nothing)
        #expect(session.tick(nowMs: 500) == .leave)
        #expect(session.received(.success(other)) == .ignore)
    }

    @Test("it does not leave before what was taken is answered") func itDoesNotLeave() {
        var session = open()
        session.askToLeave(atMs: 500)
        #expect(session.received(.success(other)) == .handle(other), "its moment has not come")
        #expect(session.tick(nowMs: 500, awaitsAnswer: true) == .nothing)
        #expect(session.received(.success(other)) == .ignore, "nothing more is taken, or it would never go")
        #expect(session.tick(nowMs: 90_000, awaitsAnswer: true) == .nothing)
        #expect(session.tick(nowMs: 90_020) == .leave)
    }
}

/// Tests a wait for a position that the node has not read.
@Suite struct PositionWaitTests {
    func wait(_ seq: Seq) -> SeqWaiter {
        SeqWaiter(partition: 0, seq: seq, behindMs: 2_000, aheadMs: 5_000)
    }

    func code(_ step: SeqWaiter.Step) -> ErrorCode? {
        if case .refuse(let error) = step { error.code } else { nil }
    }

    @Test("a wait for a seq that the log has ends after two seconds") func waitsTwoSeconds() {
        var wait = wait(9)
        #expect(wait.logEnds(at: 9, nowMs: 0) == .wait)
        #expect(wait.tick(head: 8, nowMs: 1_999) == .wait)
        var slow = wait
        #expect(wait.tick(head: 9, nowMs: 1_999) == .reached)
        #expect(code(slow.tick(head: 8, nowMs: 2_000)) == .nodeBehind)
    }

    @Test("a wait for a seq after the log's end asks the log twice before it fails") func asksLogTwice() {
        var wait = wait(9)
        #expect(wait.logEnds(at: 8, nowMs: 0) == .wait)
        #expect(wait.tick(head: 8, nowMs: 4_999) == .wait)
        #expect(wait.tick(head: 8, nowMs: 5_000) == .ask)
        var late = wait
        let step = wait.logEnds(at: 8, nowMs: 5_001)
        #expect(code(step) == .aheadOfLog)
        #expect("\(step)".contains("the log ends at 8: nobody has read that here, or the log has lost something"))
        #expect(late.logEnds(at: 9, nowMs: 5_001) == .wait)
        #expect(late.tick(head: 9, nowMs: 5_100) == .reached)
    }

    @Test("a wait fails with log_unavailable when the log does not answer") func reportsSilentLog() {
        var wait = wait(9)
        #expect(code(wait.logEnds(at: nil, nowMs: 0)) == .logUnavailable)
    }
}
