/// A limit of operations that run at a time, and the readers that wait for one. The subscriptions of a connection share
/// one for their reads of the log and questions to nodes, because a loop can run few at once, and each runs to its end
/// even if the client abandons it. A reader may also wait for a read that another client began, which is no operation
/// of its own.
final class ReadAccount {
    /// The maximum number of operations of one connection.
    static let operationsMax = 4

    /// The number of readers that are not idle, including ended ones.
    var readers = 0
    private(set) var operations = 0
    private let operationsMax: Int
    /// The readers that wait. They keep no page, because many of them would keep more than the cache may.
    private var waiting = Deque<any EventReader>()

    init(operations operationsMax: Int = ReadAccount.operationsMax) {
        self.operationsMax = operationsMax
    }

    var isFull: Bool { operations >= operationsMax }

    /// Begins an operation. The caller has asked if there is room for one.
    func begin() { operations += 1 }

    /// Ends an operation.
    func end() { operations -= 1 }

    /// Adds a reader that waits until an operation ends.
    func wait(_ reader: any EventReader) { waiting.append(reader) }

    /// Removes and returns the reader that waits longest, if an operation may begin.
    func next() -> (any EventReader)? { isFull ? nil : waiting.popFirst() }
}

@available(*, unavailable)
extension ReadAccount: Sendable {}
