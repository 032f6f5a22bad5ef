/// A deadline that is moved often and passes rarely, one for each connection: moving it further away costs one store.
/// It may pass up to `DeadlineWheel.tickMs` late, never early.
public final class Deadline {
    private let loop: EventLoop
    private var body: (() -> Void)?
    /// When it passes, on the loop's clock; `never` while it is off.
    fileprivate private(set) var due = Deadline.never
    /// The tick that looks at it next; `never` while it is in no slot.
    fileprivate var scheduled = Deadline.never

    /// In place of an optional, which is twice as large.
    fileprivate static let never = UInt64.max

    /// A deadline, not set yet, that calls the body when it passes. On the loop.
    public init(on loop: EventLoop, _ body: @escaping () -> Void) {
        self.loop = loop
        self.body = body
    }

    /// Sets or moves it: so long from now.
    public func set(_ delay: Duration) {
        guard body != nil else { return }
        let due = loop.now + delay.milliseconds
        self.due = due
        loop.wheel.schedule(self, due)
    }

    /// Switches it off until it is set again.
    public func clear() {
        due = Self.never
    }

    /// Switches it off for good and lets the body go.
    public func cancel() {
        due = Self.never
        body = nil
    }

    fileprivate func pass() {
        due = Self.never
        body?()
    }
}

@available(*, unavailable)
extension Deadline: Sendable {}

/// The deadlines of a loop in slots of time. A deadline that was moved is put into its new slot only when its old one
/// comes up, so that ten thousand busy connections cost nothing between ticks. No deadline, no tick.
final class DeadlineWheel {
    static let tickMs: UInt64 = 100
    private static let slotCount: UInt64 = 256

    private unowned let loop: EventLoop
    private var slots = [[Deadline]](repeating: [], count: Int(slotCount))
    private var count = 0
    private var lastTick: UInt64 = 0
    private var timer: LoopTimer?

    init(loop: EventLoop) {
        self.loop = loop
    }

    fileprivate func schedule(_ deadline: Deadline, _ due: UInt64) {
        if timer == nil { start() }
        // At the soonest the next tick, at the latest one turn ahead: then it is looked at again.
        let tick = min(max((due + Self.tickMs - 1) / Self.tickMs, lastTick + 1), lastTick + Self.slotCount)
        if deadline.scheduled <= tick { return }
        deadline.scheduled = tick
        slots[Int(tick % Self.slotCount)].append(deadline)
        count += 1
    }

    private func start() {
        lastTick = loop.now / Self.tickMs
        timer = loop.timer(after: .milliseconds(Int64(Self.tickMs)), every: .milliseconds(Int64(Self.tickMs))) {
            [unowned self] in turn()
        }
    }

    private func turn() {
        let now = loop.now / Self.tickMs
        while lastTick < now {
            lastTick += 1
            let slot = Int(lastTick % Self.slotCount)
            guard !slots[slot].isEmpty else { continue }
            let deadlines = slots[slot]
            slots[slot] = []
            count -= deadlines.count
            for deadline in deadlines where deadline.scheduled == lastTick {
                deadline.scheduled = Deadline.never
                guard deadline.due != Deadline.never else { continue }
                if deadline.due <= loop.now { deadline.pass() } else { schedule(deadline, deadline.due) }
            }
        }
        if count == 0 {
            timer?.cancel()
            timer = nil
        }
    }
}
