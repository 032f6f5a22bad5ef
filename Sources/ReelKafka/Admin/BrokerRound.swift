/// Whether each broker has answered a question that goes to any of them. Without effects.
struct BrokerRound {
    private var answered: Set<Int32> = []
    /// Every broker that one of them knows.
    private var known: Set<Int32> = []
    private let fromMs: Int64
    private let untilMs: Int64

    /// It is over once each broker has answered, but not before `fromMs`; and at `untilMs` whoever has not.
    init(fromMs: Int64, untilMs: Int64) {
        self.fromMs = fromMs
        self.untilMs = untilMs
    }

    /// A broker has answered, which knows these.
    mutating func hear(_ broker: Int32, of brokers: Set<Int32>) {
        answered.insert(broker)
        known.formUnion(brokers)
    }

    func isOver(nowMs: Int64) -> Bool {
        nowMs >= untilMs || nowMs >= fromMs && !answered.isEmpty && answered.isSuperset(of: known)
    }
}
