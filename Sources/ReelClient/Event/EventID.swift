internal import ReelCore

/// The site and op of an event. An event that waits in the queue and was never sent has none.
struct EventID: Hashable, Sendable {
    var site: Site
    var op: Op
}
