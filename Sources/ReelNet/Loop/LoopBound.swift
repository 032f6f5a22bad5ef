/// A reference to something that lives on one loop, safe to carry through other threads: only the loop may open it.
public struct LoopBound<Value>: @unchecked Sendable {
    /// The loop that the value belongs to.
    public let loop: EventLoop
    private let content: Value

    /// Wraps a value of this loop. On the loop.
    public init(_ value: Value, on loop: EventLoop) {
        loop.checkIsolated()
        self.loop = loop
        content = value
    }

    /// The value. On the loop; traps elsewhere.
    public var value: Value {
        loop.checkIsolated()
        return content
    }
}

/// Moves a value that is used by one thread after the other.
struct UncheckedTransfer<Value>: @unchecked Sendable {
    let value: Value
}
