/// A deadline that is moved often and passes rarely. It may pass up to `DeadlineWheel.tickMs` late, twice that where
/// the loop stood still, never early.
public final class Deadline {
    private final class Call: Timed {
        var body: (() -> Void)?

        override func deadlinePassed() { body?() }
    }

    private let call: Call

    /// A deadline, not set yet, that calls the body when it passes. On the loop.
    public init(on loop: EventLoop, _ body: @escaping () -> Void) {
        call = Call(on: loop)
        call.body = body
    }

    /// Sets or moves it: so long from now.
    public func set(_ delay: Duration) {
        if call.body != nil { call.setDeadline(delay) }
    }

    /// Switches it off until it is set again.
    public func clear() {
        call.clearDeadline()
    }

    /// Switches it off for good and lets the body go.
    public func cancel() {
        call.clearDeadline()
        call.body = nil
    }
}

@available(*, unavailable)
extension Deadline: Sendable {}

/// What has a deadline of its own, as each connection has: moving it further away costs one store.
class Timed {
    /// The loop that it lives on.
    final let loop: EventLoop
    /// When the deadline passes, on the loop's clock; `off` while there is none.
    fileprivate final private(set) var due = Timed.off
    /// The mark of the tick that looks at it next; 0 while none does.
    fileprivate final var scheduled: UInt32 = 0

    /// In place of an optional, which is twice as large.
    private static let off = UInt64.max

    init(on loop: EventLoop) {
        self.loop = loop
    }

    /// Sets the deadline or moves it: so long from now.
    final func setDeadline(_ delay: Duration) {
        due = Self.due(delay, from: loop.freshNow)
        loop.wheel.schedule(self)
    }

    /// The end of the delay on the loop's clock; for a sum that has no room, the last moment that is not `off`.
    static func due(_ delay: Duration, from now: UInt64) -> UInt64 {
        let (due, overflow) = now.addingReportingOverflow(delay.milliseconds)
        return overflow ? off - 1 : min(due, off - 1)
    }

    /// There is none until it is set again.
    final func clearDeadline() {
        due = Self.off
    }

    fileprivate final var hasDeadline: Bool { due != Self.off }

    fileprivate final func pass() {
        clearDeadline()
        deadlinePassed()
    }

    /// It has passed, and there is none until it is set again.
    func deadlinePassed() {}
}

@available(*, unavailable)
extension Timed: Sendable {}

/// The deadlines of a loop in slots of time. A deadline that was moved is put into its new slot only when its old one
/// comes up, so that ten thousand busy connections cost nothing between ticks. No deadline, no tick.
final class DeadlineWheel {
    static let tickMs: UInt64 = 100
    private static let slotCount: UInt64 = 256
    /// Behind so many ticks without a turn the loop stood still.
    private static let standstill: UInt64 = 5

    private unowned let loop: EventLoop
    private var slots = [[Timed]](repeating: [], count: Int(slotCount))
    private var count = 0
    private var lastTick: UInt64 = 0
    private var timer: LoopTimer?
    private var isPutOff = false

    init(loop: EventLoop) {
        self.loop = loop
    }

    fileprivate func schedule(_ timed: Timed) {
        if timer == nil { start() }
        let tick = Self.tick(due: timed.due, after: lastTick)
        if timed.scheduled != 0, Self.isSoon(timed.scheduled, asTick: tick, after: lastTick) { return }
        timed.scheduled = Self.mark(tick)
        slots[Int(tick % Self.slotCount)].append(timed)
        count += 1
    }

    /// The tick that looks at a deadline: at the soonest the next one, at the latest one a turn ahead. That one puts
    /// the deadline into its next slot.
    static func tick(due: UInt64, after last: UInt64) -> UInt64 {
        let tick = due / tickMs + (due % tickMs == 0 ? 0 : 1)
        return min(max(tick, last + 1), last + slotCount)
    }

    /// What a deadline remembers of a tick: its last 31 bits, in a number that is never 0. Ticks in use lie within a
    /// turn of each other, so their marks differ at every value of the machine's clock.
    static func mark(_ tick: UInt64) -> UInt32 { UInt32(truncatingIfNeeded: tick) | 1 << 31 }

    /// True if the tick with this mark, one within a turn of `last`, comes no later than `tick`.
    static func isSoon(_ mark: UInt32, asTick tick: UInt64, after last: UInt64) -> Bool {
        (mark &- Self.mark(last)) & ((1 << 31) - 1) <= UInt32(truncatingIfNeeded: tick - last)
    }

    private func start() {
        lastTick = loop.now / Self.tickMs
        timer = loop.timer(after: .milliseconds(Int64(Self.tickMs)), every: .milliseconds(Int64(Self.tickMs))) {
            [unowned self] in turn()
        }
    }

    private func turn() {
        let now = loop.now / Self.tickMs
        // Who stood still hears first what has come meanwhile: nobody is late for that.
        isPutOff = !isPutOff && now > lastTick + Self.standstill
        if isPutOff { return }
        while lastTick < now {
            lastTick += 1
            let slot = Int(lastTick % Self.slotCount)
            guard !slots[slot].isEmpty else { continue }
            let found = slots[slot]
            slots[slot] = []
            count -= found.count
            for timed in found where timed.scheduled == Self.mark(lastTick) {
                timed.scheduled = 0
                guard timed.hasDeadline else { continue }
                if timed.due <= loop.now { timed.pass() } else { schedule(timed) }
            }
        }
        if count == 0 {
            timer?.cancel()
            timer = nil
        }
    }
}
