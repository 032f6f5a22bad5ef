public import ReelNet

/// The event loops of a node, each with the objects that are bound to it.
public struct NodeLoops<Part>: Sendable {
    /// One part for each loop, in the order of the loops.
    public let parts: [LoopBound<Part>]

    /// Starts loops, and makes the part of each. If it throws, it leaves no loop running. Not on a loop.
    ///
    /// - Parameters:
    ///   - count: The number of loops.
    ///   - make: Makes the part of a loop, given the loop's index. Called on the loop.
    /// - Throws: `NetError` if a loop cannot be started, and the errors of `make`.
    public init(_ count: Int, make: @escaping @Sendable (EventLoop, Int) throws -> Part) throws {
        var loops: [EventLoop] = []
        do {
            for _ in 0..<count { loops.append(try EventLoop()) }
            parts = try loops.enumerated().map { index, loop in
                try loop.sync { LoopBound(try make(loop, index), on: loop) }
            }
        } catch {
            Self.end(loops)
            throw error
        }
    }

    /// Ends the loops. Returns once their threads have ended. Not on a loop.
    public func end() { Self.end(parts.map(\.loop)) }

    private static func end(_ loops: [EventLoop]) {
        for loop in loops { loop.stop() }
        for loop in loops { loop.join() }
    }
}
