import ReelCore

/// Decides which of several nodes are asked one question, and when. It does no I/O.
///
/// The first node is asked at once. While no node has begun to answer, the next node is asked after a delay: this is a
/// hedged request. If a node has failed or refused, the next one is asked at once. The first answer that is no refusal
/// is passed on, and the other requests are cancelled. After Dean and Barroso, "The Tail at Scale" (CACM 56, 2, 2013),
/// and the hedging of gRPC (proposal A6).
struct HedgedQuestion {
    /// An action that the caller has to do. Several are done in their order.
    enum Action: Equatable {
        /// Send the question to the node with this index.
        case ask(Int)
        /// Start a timer that calls `delayPassed` after the delay, in place of an earlier timer.
        case wait
        /// Cancel the request to this node. `wasSilent`: another node answered faster than this one was silent.
        case cancel(Int, wasSilent: Bool)
        /// Pass on what this node answers.
        case pass(Int)
        /// Answer with the refusal of this node; nil: no node has answered.
        case refuse(with: Int?)
    }

    private struct Request {
        var index: Int
        var askedMs: Int64
    }

    private struct Refusal {
        var index: Int
        /// The position that the node says it has reached; −1: it says nothing.
        var seq: Seq
    }

    private let count: Int
    private let delayMs: Int64
    /// The first node that was not asked yet.
    private var next = 0
    private var requests: [Request] = []
    /// The refusal of the node that is furthest; among equal ones the last.
    private var refusal: Refusal?
    private var isOver = false

    /// Creates a question for `count` nodes, the best one first. `delayMs` is the time without an answer after which
    /// the next node is asked.
    init(nodes count: Int, delayMs: Int64) {
        self.count = count
        self.delayMs = delayMs
    }

    /// The nodes that were asked and have neither answered nor failed.
    var asked: [Int] { requests.map(\.index) }

    /// True if another node can be asked.
    var hasNext: Bool { !isOver && next < count }

    /// Starts the question. Returns the first actions.
    mutating func start(nowMs: Int64) -> [Action] { askNext(nowMs) }

    /// Called when the delay has passed since the last `wait`. `mayHedge`: true if the next node may be asked, too.
    /// Otherwise the question waits for the delay once more.
    mutating func delayPassed(mayHedge: Bool, nowMs: Int64) -> [Action] {
        guard hasNext else { return [] }
        return mayHedge ? ask(nowMs) : [.wait]
    }

    /// Called when the head of a usable answer has come from a node.
    mutating func answered(_ index: Int, nowMs: Int64) -> [Action] {
        guard let winner = take(index) else { return [] }
        // If the winner was slow as well, slowness says nothing about the others.
        let isQuick = nowMs - winner.askedMs < delayMs
        let others = requests.map { request in
            Action.cancel(request.index, wasSilent: isQuick && nowMs - request.askedMs >= delayMs)
        }
        end()
        return others + [.pass(index)]
    }

    /// Called when a node answered that it cannot answer now. `seq` is the position that it says it has reached, or −1.
    mutating func refused(_ index: Int, seq: Seq, nowMs: Int64) -> [Action] {
        guard take(index) != nil else { return [] }
        if seq >= refusal?.seq ?? .none { refusal = Refusal(index: index, seq: seq) }
        return askNext(nowMs)
    }

    /// Called when a node did not answer.
    mutating func failed(_ index: Int, nowMs: Int64) -> [Action] {
        guard take(index) != nil else { return [] }
        return askNext(nowMs)
    }

    /// Called when the client of the question is gone.
    mutating func giveUp() -> [Action] {
        let actions = requests.map { Action.cancel($0.index, wasSilent: false) }
        end()
        return actions
    }

    /// Ends the request to a node; nil: there is none, or the question is over.
    private mutating func take(_ index: Int) -> Request? {
        guard let place = requests.firstIndex(where: { $0.index == index }) else { return nil }
        return requests.remove(at: place)
    }

    /// Asks the next node in place of one that has failed, unless another request was sent after that one.
    private mutating func askNext(_ nowMs: Int64) -> [Action] {
        if let last = requests.last, last.index == next - 1 { return [] }
        if next < count { return ask(nowMs) }
        guard requests.isEmpty else { return [] }
        end()
        return [.refuse(with: refusal?.index)]
    }

    private mutating func ask(_ nowMs: Int64) -> [Action] {
        let index = next
        next += 1
        requests.append(Request(index: index, askedMs: nowMs))
        return next < count ? [.ask(index), .wait] : [.ask(index)]
    }

    private mutating func end() {
        isOver = true
        requests = []
    }
}
