/// A deadline that moves often and passes rarely. It never passes early. It may pass up to `DeadlineWheel.tickMs` late,
/// or twice that if the loop was blocked.
public final class Deadline {
    private final class Call: Timed {
        var body: (() -> Void)?

        override func deadlinePassed() { body?() }
    }

    private let call: Call

    /// Creates a deadline that is not set yet and that calls `body` when it passes. On the loop.
    public init(on loop: EventLoop, _ body: @escaping () -> Void) {
        call = Call(on: loop)
        call.body = body
    }

    /// Sets or moves the deadline to `delay` from now. On the loop.
    public func set(_ delay: Duration) {
        if call.body != nil { call.setDeadline(delay) }
    }

    /// Switches the deadline off until the next `set`. On the loop.
    public func clear() {
        call.clearDeadline()
    }

    /// Switches the deadline off for good and releases the body. On the loop.
    public func cancel() {
        call.clearDeadline()
        call.body = nil
    }
}

@available(*, unavailable)
extension Deadline: Sendable {}

/// An object with a deadline of its own, such as a connection. To move the deadline further away costs one store.
class Timed {
    /// The loop that the object belongs to.
    final let loop: EventLoop
    /// The time at which the deadline passes, in milliseconds of the loop's clock; `off` if there is no deadline.
    fileprivate final private(set) var due = Timed.off
    /// The mark of the tick that checks this deadline next; 0 if no tick does.
    fileprivate final var scheduled: UInt32 = 0

    /// The value for "no deadline". It replaces an optional, which is twice as large.
    private static let off = UInt64.max

    init(on loop: EventLoop) {
        self.loop = loop
    }

    /// Sets the deadline or moves it to `delay` from now. On the loop.
    final func setDeadline(_ delay: Duration) {
        due = Self.due(delay, from: loop.freshNow)
        loop.wheel.schedule(self)
    }

    /// Returns the end of `delay` on the loop's clock, in milliseconds. If the sum overflows, it returns the last
    /// moment that is not `off`.
    static func due(_ delay: Duration, from now: UInt64) -> UInt64 {
        let (due, overflow) = now.addingReportingOverflow(delay.milliseconds)
        return overflow ? off - 1 : min(due, off - 1)
    }

    /// Removes the deadline until the next `setDeadline`. On the loop.
    final func clearDeadline() {
        due = Self.off
    }

    fileprivate final var hasDeadline: Bool { due != Self.off }

    fileprivate final func pass() {
        clearDeadline()
        deadlinePassed()
    }

    /// Called on the loop when the deadline has passed. There is no deadline then until the next `setDeadline`.
    func deadlinePassed() {}
}

@available(*, unavailable)
extension Timed: Sendable {}

/// The deadlines of a loop in slots of time: a hashed timing wheel.
///
/// A deadline that was moved is put into its new slot only when its old slot is checked. So ten thousand busy
/// connections cost nothing between ticks. Without deadlines there are no ticks.
final class DeadlineWheel {
    static let tickMs: UInt64 = 100
    private static let slotCount: UInt64 = 256
    /// The number of missed ticks after which the loop counts as having been blocked.
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

    /// Returns the tick that checks a deadline: at the earliest the next tick, at the latest the one that is one turn
    /// of the wheel ahead. That last tick puts a later deadline into its next slot.
    static func tick(due: UInt64, after last: UInt64) -> UInt64 {
        let tick = due / tickMs + (due % tickMs == 0 ? 0 : 1)
        return min(max(tick, last + 1), last + slotCount)
    }

    /// Returns the form in which a deadline stores a tick: its last 31 bits, in a number that is never 0. Ticks in use
    /// are within one turn of each other, so their marks differ at every value of the machine's clock.
    static func mark(_ tick: UInt64) -> UInt32 { UInt32(truncatingIfNeeded: tick) | 1 << 31 }

    /// True if the tick with this mark is not later than `tick`. The tick has to be within one turn of `last`.
    static func isSoon(_ mark: UInt32, asTick tick: UInt64, after last: UInt64) -> Bool {
        (mark &- Self.mark(last)) & ((1 << 31) - 1) <= UInt32(truncatingIfNeeded: tick - last)
    }

    /// Removes everything, because the loop has ended. A closed connection stays in its slot until the slot is checked,
    /// and holds the loop.
    func removeAll() {
        for index in slots.indices { slots[index] = [] }
        count = 0
        timer = nil
    }

    private func start() {
        lastTick = loop.now / Self.tickMs
        timer = loop.timer(after: .milliseconds(Int64(Self.tickMs)), every: .milliseconds(Int64(Self.tickMs))) {
            [unowned self] in turn()
        }
    }

    private func turn() {
        let now = loop.now / Self.tickMs
        // After the loop was blocked, it first handles the input that has arrived meanwhile: that input is not late. So
        // the deadlines wait for one more tick.
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
