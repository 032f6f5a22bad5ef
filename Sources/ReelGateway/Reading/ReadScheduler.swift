import ReelCore
import ReelLog
import ReelNode

/// Reads events before the head for all readers of a loop. It finds each piece in the ring, in a snapshot node's index,
/// or in a page of the log. It calls readers only in their turn, or when something that they wait for ends: never
/// inside `read`. On its loop only.
///
/// A reader goes through these states, one piece at a time:
///
///     idle → queued → (reading → queued)? → received → queued … → caughtUp, idle
///
/// In between it may wait for room at its client, or for another operation of its connection.
final class ReadScheduler {
    private unowned let gateway: GatewayLoop
    private let context: GatewayContext
    /// The queue in which readers, and other long work of the loop, take their turns.
    let turns: FairQueue
    private let pages: PageReader
    /// The questions for outcomes of this loop. A snapshot node answers few at once.
    private let questions = ReadAccount(operations: 16)
    /// The maximum number of events in one question for outcomes.
    private static let outcomesAtOnce = 1_000
    /// The pause in milliseconds after which a question that met an overloaded node is repeated.
    private static let overloadMs: Int64 = 200

    init(of gateway: GatewayLoop) {
        self.gateway = gateway
        context = gateway.context
        turns = FairQueue(on: gateway.loop)
        pages = PageReader(on: gateway.loop, context: gateway.context)
        pages.whenEnded = { [unowned self] waiter, outcome in ended(waiter, outcome) }
    }

    /// Moves a reader on, in its turn, until it has caught up or fails. Does nothing if the reader is under way.
    func read(_ reader: any EventReader) {
        guard reader.readState == .idle else { return }
        reader.account?.readers += 1
        enqueue(reader)
    }

    /// Moves a reader on that waits for room at its client. Does nothing if it waits for something else.
    func roomFreed(_ reader: any EventReader) {
        if reader.readState == .waitsForRoom { enqueue(reader) }
    }

    // MARK: Turns

    private func enqueue(_ reader: any EventReader, _ page: LogPage? = nil) {
        reader.readState = .queued
        turns.add { [gateway] in gateway.reads.turn(reader, page) }
    }

    /// Finds the next piece of a reader. `page` is the page that it has waited for; nil: none.
    private func turn(_ reader: any EventReader, _ page: LogPage?) -> FairQueue.Cost {
        defer { wakeNext(of: reader.account) }
        guard !reader.isOver else {
            leave(reader)
            return .nothing
        }
        if let divergence = context.health.divergence {
            fail(reader, LogError(divergence.code, divergence.message))
            return .small
        }
        let limits = limits(of: reader)
        switch reader.cursor.step(to: reader.last, bytes: limits.bytes, events: limits.events) {
        case .caughtUp:
            catchUp(reader)
            return .small
        case .need where !reader.hasRoom:
            waitForRoom(reader)
            return .nothing
        case .need(let query): return find(query, page, for: reader)
        }
    }

    /// Returns the limits of a piece. An event takes 100 bytes or more, its outcome at most 33.
    private func limits(of reader: any EventReader) -> (bytes: Int, events: Int) {
        let (bytes, events) = (min(reader.limits.bytes, PageReader.pageBytes), reader.limits.events)
        return reader.cursor.hasOutcomes ? (max(1, bytes / 4 * 3), min(events, Self.outcomesAtOnce)) : (bytes, events)
    }

    private func wakeNext(of account: ReadAccount?) {
        for limit in [account, questions] {
            if let reader = limit?.next() { enqueue(reader) }
        }
    }

    private func waitForRoom(_ reader: any EventReader) {
        reader.readState = .waitsForRoom
        reader.waitForRoom()
    }

    private func wait(_ reader: any EventReader, for account: ReadAccount) {
        reader.readState = .waitsForOperation
        account.wait(reader)
    }

    private func leave(_ reader: any EventReader) {
        reader.readState = .idle
        reader.account?.readers -= 1
    }

    private func catchUp(_ reader: any EventReader) {
        leave(reader)
        reader.caughtUp()
    }

    private func fail(_ reader: any EventReader, _ error: LogError) {
        leave(reader)
        reader.failed(gateway.reason(error, reader.cursor.stream))
    }

    // MARK: Finding a piece

    private func find(_ query: LogQuery, _ page: LogPage?, for reader: any EventReader) -> FairQueue.Cost {
        // The question for outcomes follows at once.
        if reader.cursor.hasOutcomes {
            for case let account? in [reader.account, questions] where account.isFull {
                wait(reader, for: account)
                return .small
            }
        }
        if let piece = gateway.rings[query.partition].piece(for: query) {
            context.meters.ringEvents.add(piece.count)
            return deliver(piece, to: reader)
        }
        var old = query
        old.to = min(query.to, gateway.rings[query.partition].first - 1)
        if let page = page.flatMap({ $0.seqs.contains(old.from) ? $0 : nil }) ?? pages.kept(for: old) {
            let piece = pages.piece(for: old, from: page)
            context.meters.logEvents.add(piece.count)
            return deliver(piece, to: reader)
        }
        if let node = gateway.snapshotEvents?.node(for: old) {
            if let account = reader.account, account.isFull {
                wait(reader, for: account)
            } else {
                ask(node, old, for: reader)
            }
        } else {
            readLog(old, for: reader, hasBegun: false)
        }
        return .small
    }

    private func ask(_ node: NodeAnnouncement, _ query: LogQuery, for reader: any EventReader) {
        reader.readState = .reading
        reader.account?.begin()
        // The question for outcomes follows at once, so its place is kept.
        let question = reader.cursor.hasOutcomes ? questions : nil
        question?.begin()
        let authorization = reader.access?.authorization
        gateway.snapshotEvents?.ask(node, for: query, authorization: authorization) { [gateway] piece in
            question?.end()
            gateway.reads.answered(piece, query, for: reader)
        }
    }

    private func answered(_ piece: EventRange?, _ query: LogQuery, for reader: any EventReader) {
        if piece == nil, !reader.isOver {
            readLog(query, for: reader, hasBegun: true)
        } else {
            reader.account?.end()
            if let piece, !reader.isOver, context.health.divergence == nil {
                context.meters.snapshotEvents.add(piece.count)
                _ = deliver(piece, to: reader)
            } else {
                // In its turn the reader ends, or gets the divergence.
                enqueue(reader)
            }
        }
        wakeNext(of: reader.account)
    }

    /// Waits for a page of the log. `hasBegun`: true if the reader holds an operation.
    private func readLog(_ query: LogQuery, for reader: any EventReader, hasBegun: Bool) {
        reader.readState = .reading
        if pages.join(PageReader.Waiter(reader: reader, query: query, hasBegun: hasBegun)) { return }
        if !hasBegun {
            if let account = reader.account, account.isFull { return wait(reader, for: account) }
            reader.account?.begin()
        }
        pages.begin(PageReader.Waiter(reader: reader, query: query, hasBegun: true))
    }

    /// Called when a read of the log has ended. Without a page the reader looks again.
    private func ended(_ waiter: PageReader.Waiter, _ outcome: Result<LogPage?, LogError>) {
        let reader = waiter.reader
        if waiter.hasBegun { reader.account?.end() }
        switch outcome {
        case .success(let page): enqueue(reader, page)
        case .failure(let error): if reader.isOver { leave(reader) } else { fail(reader, error) }
        }
        wakeNext(of: reader.account)
    }

    // MARK: Delivering

    /// Hands a piece to its reader, with outcomes if the reader wants them.
    private func deliver(_ piece: EventRange, to reader: any EventReader) -> FairQueue.Cost {
        let cost = FairQueue.Cost(bytes: piece.body.count, isFiltered: reader.cursor.filter != nil)
        guard reader.cursor.hasOutcomes, piece.count > 0, let access = reader.access else {
            take(.success(piece), for: reader)
            return cost
        }
        reader.readState = .reading
        for account in [reader.account, questions] { account?.begin() }
        gateway.addOutcomes(to: piece, of: reader.cursor.stream, for: access) { [gateway] result in
            gateway.reads.answered(result, for: reader)
        }
        return cost
    }

    /// Called with a piece and its outcomes.
    private func answered(_ result: Result<EventRange, Problem>, for reader: any EventReader) {
        for account in [reader.account, questions] { account?.end() }
        if case .failure(let problem) = result, problem.code == .overloaded, reader.waitsOutOverload {
            readLater(reader)
        } else {
            take(result, for: reader)
        }
        wakeNext(of: reader.account)
    }

    /// Lets a reader try again after a pause.
    private func readLater(_ reader: any EventReader) {
        reader.readState = .reading
        gateway.loop.once(after: Self.overloadMs) { [gateway] in gateway.reads.enqueue(reader) }
    }

    private func take(_ result: Result<EventRange, Problem>, for reader: any EventReader) {
        guard !reader.isOver else { return leave(reader) }
        switch result {
        case .failure(let problem):
            leave(reader)
            return reader.failed(ReelError(problem.code, problem.detail))
        case .success(let piece): reader.received(piece)
        }
        // Reading and packing cost time that the client's pace does not limit, so the loop does other work in between.
        guard !reader.isOver else { return leave(reader) }
        if reader.cursor.next > reader.last {
            catchUp(reader)
        } else if reader.hasRoom {
            enqueue(reader)
        } else {
            waitForRoom(reader)
        }
    }
}

@available(*, unavailable)
extension ReadScheduler: Sendable {}
