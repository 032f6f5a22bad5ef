import ReelCore

/// A client's wish to read a part of a stream.
struct ReadRequest {
    let stream: StreamName
    /// The epoch of the client's position; nil if the client names none.
    let epoch: Epoch?
    /// The lowest seq that the client wants to read.
    let lowest: Seq
    /// The highest seq that the client wants to read or already holds.
    let highest: Seq

    init(stream: StreamName, epoch: Epoch?, lowest: Seq, highest: Seq) {
        (self.stream, self.epoch, self.lowest, self.highest) = (stream, epoch, lowest, highest)
    }

    /// The wish to read what comes after a seq; −1: all.
    init(stream: StreamName, epoch: Epoch?, after: Seq) {
        self.init(stream: stream, epoch: epoch, lowest: after + 1, highest: after)
    }
}
