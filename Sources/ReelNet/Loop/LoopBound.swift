/// A reference to an object of one loop that other threads may carry. Only the loop may open it.
public struct LoopBound<Value>: @unchecked Sendable {
    /// The loop that the value belongs to.
    public let loop: EventLoop
    private let content: Value

    /// Wraps a value that belongs to `loop`. On the loop.
    public init(_ value: Value, on loop: EventLoop) {
        loop.checkIsolated()
        self.loop = loop
        content = value
    }

    /// The wrapped value. On the loop; traps on any other thread.
    public var value: Value {
        loop.checkIsolated()
        return content
    }
}

/// A value that is passed from one thread to another. The threads use it one after the other.
struct UncheckedTransfer<Value>: @unchecked Sendable {
    let value: Value
}
