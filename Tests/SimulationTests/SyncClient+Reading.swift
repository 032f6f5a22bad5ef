import ReelCore

@testable import ReelClient

/// The objects of a stream by its name; none if the store has failed or was lost.
extension SyncClient {
    nonisolated func object(_ model: String, _ id: String, of name: StreamName) -> SyncObject? {
        (try? stream(name).object(model, id: id)) ?? nil
    }

    nonisolated func objects(_ model: String, of name: StreamName) -> [SyncObject] {
        (try? stream(name).objects(model)) ?? []
    }

    nonisolated func confirmed(_ model: String, _ id: String, of name: StreamName) -> SyncObject? {
        (try? stream(name).confirmed.object(model, id: id)) ?? nil
    }

    /// The open stream of this name. A stream that is not open is one of which every read throws.
    nonisolated func stream(_ name: StreamName) -> SyncStream {
        var opening: StreamOpening?
        content.change { opening = $0[name]?.opening }
        return SyncStream(client: self, opening: opening ?? StreamOpening(name: name, number: -1))
    }
}
