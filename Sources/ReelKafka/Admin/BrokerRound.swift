/// Tracks which brokers have answered a question that goes to any of them. Pure.
struct BrokerRound {
    private var answered: Set<Int32> = []
    /// All brokers that any of them knows.
    private var known: Set<Int32> = []
    private let fromMs: Int64
    private let untilMs: Int64

    /// Creates a round. It ends once every broker has answered, but not before `fromMs`, and at `untilMs` in any case.
    init(fromMs: Int64, untilMs: Int64) {
        self.fromMs = fromMs
        self.untilMs = untilMs
    }

    /// Takes the answer of `broker`, which knows `brokers`.
    mutating func hear(_ broker: Int32, of brokers: Set<Int32>) {
        answered.insert(broker)
        known.formUnion(brokers)
    }

    func isOver(nowMs: Int64) -> Bool {
        nowMs >= untilMs || nowMs >= fromMs && !answered.isEmpty && answered.isSuperset(of: known)
    }
}
